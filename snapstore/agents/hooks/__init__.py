"""From what an agent's hooks say to recorded turns, the same for every agent.

`turns` is the entry point: it takes events (`events`, `payload`) and begins, touches and ends turns. `session_lookup`
finds the session an agent's id belongs to, `tool_effects` tells what a tool call may do to files, `turn_record` reads
the conversation when a turn is over, and `interrupted` closes turns that nobody works on.

A hook must never disturb the agent: whatever fails here is logged, not raised.
"""
