"""Find what changed in the user's folder since it was last looked at.

`scan.Scan` is the entry point: it compares the disk with `stat_cache`, lists the folders whose time moved (`walk`), and
reads changed files into blobs (`blob_reader`) in bounded memory. `borrow` takes over blobs and trees that the user's
own git repository holds already, for the first snapshot. `rule_reader` loads the ignore rules, `case_folding` handles
file systems that do not tell README from readme.

The package only reads the user's folder. It must not import `worktree.write`.
"""
