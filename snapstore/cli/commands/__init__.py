"""The commands: one file per command, named after it. `app` loads a file when its command is used."""
