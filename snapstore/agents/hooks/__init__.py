"""Turns the hook events of any agent into recorded turns.

`turns` is the entry point: it takes events (`events`, `payload`) and begins, touches and ends turns. `session_lookup`
finds the session that an agent's session id belongs to, `tool_effects` determines what a tool call may do to files,
`turn_record` reads the conversation when a turn ends, and `interrupted` closes turns whose agent is gone or was
interrupted.

A hook must never disturb the agent: errors here are logged, not raised.
"""
