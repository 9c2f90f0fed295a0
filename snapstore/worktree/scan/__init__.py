"""Finds what changed in the user's folder since the last scan.

`scan.Scan` is the entry point. A scan compares the disk with `stat_cache`, lists the folders whose time stamps changed
(`walk`), and reads changed files into blobs (`blob_reader`) in bounded memory. For the first snapshot, `borrow` reuses
blobs and trees of the user's own git repository. `rule_reader` loads the ignore rules. `case_folding` handles file
systems that do not distinguish README from readme.

The package only reads the user's folder, and must not import `worktree.write`.
"""
