"""The command line of link coordination: one module a command, and what all commands share."""
