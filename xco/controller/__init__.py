"""The controller's Python part: holds the lease, starts the compiled loop, reports its state."""
