"""The parts of the terminal tree's main screen.

`tree` is the tree panel, `preview` shows the selected turn, `diff` a diff, `bars` the lines above and below. `lines`
draws any number of lines, but only those in view. `patch` and `pick_list` provide lines.

A widget draws what it is given and asks the app for the rest.
"""
