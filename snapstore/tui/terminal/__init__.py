"""Terminal specifics: output, paste handling, glyphs and colours.

`driver` is Textual's driver for a terminal that may be closed at any moment. `paste` keeps pasted text from acting as
keys. `ascii` replaces glyphs that a terminal cannot show. `themes` has the colours.

Nothing here knows about turns.
"""
