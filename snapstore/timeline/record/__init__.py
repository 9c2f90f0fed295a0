"""Record turns: begin, touch, end, and the commits these steps produce.

`session.RecordingSession` is the entry point. Each step is one transaction (`transaction`): look at the disk, commit on
the session's line (`line_writer`), and change refs and documents through the journal. `create_store` makes a store with
its baseline, `import_turns` records turns that happened earlier, `autosave` saves while a turn is open, and
`branch_limit` archives the oldest branches. `redact` and `fragments` keep forgotten content out of records.

The package must not import `timeline.moves`: moves record commits too, so `timeline.moves` is the higher layer.
"""
