"""The parts of the terminal tree's main screen.

`tree` is the tree panel, `preview` the selected turn, `diff` a difference, `bars` the lines above and below. `lines`
draws any number of lines and only those in sight; `patch` and `pick_list` fill it.

A widget draws what it is given and asks the app for the rest.
"""
