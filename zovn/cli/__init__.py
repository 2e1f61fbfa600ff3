"""The command line of zovn."""
