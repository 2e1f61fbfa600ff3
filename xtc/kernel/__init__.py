"""Thin shells on system calls; each raises OSError as the kernel gives it."""
