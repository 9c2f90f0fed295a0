"""The local page: a server on the loopback address for one person's browser.

`server` is the entry point. `guard` decides which requests are allowed. `routes` has the endpoints. `events` tells
pages about changes in the store. `project` opens the store per request. `graphs` caches trees between requests.
`answers` writes documents and errors. `static` is the page itself.

The package holds no rules: plans and moves are made by the library. The package must not import `cli`, `tui` or `mcp`.
"""
