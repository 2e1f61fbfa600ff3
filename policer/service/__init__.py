"""The control loop: all hosts, leadership, overrides, and what is written to the store."""
