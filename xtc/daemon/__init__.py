"""The process on each host: its loop, its sockets, its metrics, and how it is built."""
