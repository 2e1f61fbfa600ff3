"""Drops what exceeds a router's rate before the host carries it there, in the kernel by BPF."""
