"""What is particular to a terminal: how it is written to, pasted into, and coloured.

`driver` is Textual's driver for a terminal that may be closed at any moment, `paste` keeps pasted text from acting as
keys, `ascii` replaces signs that a terminal cannot show, and `themes` has the colours.

Nothing here knows turns.
"""
