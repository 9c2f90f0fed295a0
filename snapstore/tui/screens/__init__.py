"""Screens over the terminal tree: lists, questions, plans, conflicts, help.

Each module is one screen. `overlay` is the common base class, `ask` the base of screens whose answer changes files,
`pick` the base of screens with a list, `line` a screen with one input line.

A screen only asks and shows. Moves go through `tui/move_controller`.
"""
