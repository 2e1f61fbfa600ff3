"""Thin shells on system calls; each raises the kernel's OSError."""
