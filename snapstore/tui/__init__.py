"""The terminal tree: every turn of a session on one screen, looked at and moved through with the keyboard."""
