"""Record turns: begin, touch, end, and the commits that come of it.

`session.RecordingSession` is the entry point. Each step is one transaction (`transaction`): a look at the disk, commits
on the session's line (`line_writer`), and refs and documents that change through the journal. `create_store` makes a
store with its baseline, `import_turns` records turns that happened earlier, `autosave` saves while a turn is open, and
`branch_limit` archives the oldest branches. `redact` and `fragments` keep forgotten content out of records.

The package must not import `timeline.moves`: moves record too, and stand above.
"""
