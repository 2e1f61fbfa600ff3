"""The coordinator's Python part: configuration, start of the compiled loop, status."""
