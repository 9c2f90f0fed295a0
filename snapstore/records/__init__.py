"""The pydantic records that cross a border: what `--json` prints, HTTP, turn notes. Fields are added, never renamed.

Making a record costs half a millisecond and a command needs few of them, so they stand in modules of their own.
"""
