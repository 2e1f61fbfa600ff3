"""Figures of the daemon: the loop, its laws, the shield, and their cost."""
