"""Turn the hook events of any agent into recorded turns.

`turns` is the entry point: it takes events (`agents.events`) and begins, touches and ends turns. `session_lookup` finds
the session that an agent's session id belongs to, `turn_record` reads the conversation when a turn ends, `person` is
for a person at a shell, and `interrupted` closes turns whose agent is gone or was interrupted.

A hook must never disturb the agent: errors here are logged, not raised.
"""
