"""The local page: a server on the loopback address for one person's browser. It holds no rules: plans and moves are
the library's."""
