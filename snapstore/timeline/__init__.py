"""Turns as a tree: where a store is found, how a turn begins and ends, and what its history says."""
