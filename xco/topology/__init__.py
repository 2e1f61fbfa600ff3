"""The coordinated network: hosts, switches, links, spanning tree, and its readers."""
