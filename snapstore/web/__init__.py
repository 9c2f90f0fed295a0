"""The local page: a server on the loopback address for one person's browser.

`server` is the entry point. `guard` decides who may speak to it, `routes` has the addresses, `events` tells pages what
happens in the store, `project` opens the store for each request, `graphs` keeps trees between requests, and `answers`
writes documents and refusals. `static` is the page itself.

The package holds no rules: plans and moves are the library's. It must not import `cli`, `tui` or `mcp`.
"""
