"""Writes to the user's folder; no other package does.

`writer.Writer` is the entry point: it executes the file moves of a plan (`file_moves`). New contents are written to
temporary files beside their targets (`temp_files`), synced, and swapped in atomically (`atomic_swap`). Folders are
opened by descriptor and links are never followed (`safe_dirs`), so nothing outside the root can be reached.

The package must not be used without the journal (store/journal.py). docs/guarantees.md says what each step promises
across a kill or a power cut.
"""
