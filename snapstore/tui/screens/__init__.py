"""Screens over the terminal tree: lists to pick from, questions, plans, conflicts, help.

Each module is one screen. `overlay` is what they share, `ask` the kind whose answer changes files, `pick` the kind with
a list, `line` the kind with one line to type in.

A screen only asks and shows: moves go through `tui.move_controller`.
"""
