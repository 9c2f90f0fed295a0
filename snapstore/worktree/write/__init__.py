"""Write to the user's folder: the only package that does.

`writer.Restore` is the entry point: it carries out the file moves of a plan (`file_moves`). New contents are written
beside their targets (`temp_files`), synced, and swapped in one step (`atomic_swap`). Folders are opened by descriptor
and links are never followed (`safe_dirs`), so nothing outside the root can be reached.

What each step promises across a kill or a power cut is written in docs/guarantees.md.
"""
