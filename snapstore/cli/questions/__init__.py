"""What a command asks a person before it moves.

`confirm` asks once whether to go on with a plan. `hunks` goes through a plan hunk by hunk. Both print to the terminal
and read lines from standard input; without a terminal `confirm` goes on and asks nothing.

Nothing here plans or moves. Only commands and `cli.move_command` import this package.
"""
