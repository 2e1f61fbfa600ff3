"""Drops what exceeds a router's rate before the host carries it there, with BPF in the kernel."""
