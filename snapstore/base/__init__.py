"""What every other package needs and what needs nothing of ours.

Durable writes, syncs and removals of small files (`files`), the kernel's locks (`locks`), what differs between Linux
and macOS (`platform`), names that are never captured (`paths`), text that is safe on a terminal (`text`), caches that
can be thrown away (`cache_file`), and the command line that starts snapstore again (`own_command`).

The package imports only `snapstore.errors`. Nothing here knows git, a store or a turn.
"""
