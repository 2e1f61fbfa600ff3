"""The lease that elects one controller, with durable, strictly increasing epochs."""
