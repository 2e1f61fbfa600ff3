"""The process on each host: its loop, sockets, metrics, and construction."""
