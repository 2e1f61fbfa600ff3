"""What a user would pick instead of xtc, on the same work."""
