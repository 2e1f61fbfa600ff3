"""The switch as a program: its configuration, its start, and what it answers."""
