"""The command line of link coordination: one module per command, and the parts they share."""
