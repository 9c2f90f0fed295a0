"""Snapshot repositories across machines: what is sent, what is taken, and whose it is."""
