"""Differences between files: changed lines, patches and renames.

`patch` is the entry point: it counts lines as `git diff --numstat` does, and writes patches that git can apply.
`edit_script` finds the changed lines, `patch_lines` iterates over the lines of a patch, and `renames` finds renamed
files with dulwich's detector.

The package compares bytes that the caller passes in. The package must not import `git.objects.store` or read the disk.
"""
