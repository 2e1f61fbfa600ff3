"""The coordinated network: hosts, switches, links, spanning tree, and how it is read."""
