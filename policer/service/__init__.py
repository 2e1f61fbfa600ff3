"""The control loop: all hosts, leadership, overrides, and records in the store."""
