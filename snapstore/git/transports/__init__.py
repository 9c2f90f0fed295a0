"""Speaking to other repositories: addresses, streams, the packet protocol, http and passwords. Use git/transport.py."""
