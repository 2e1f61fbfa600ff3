"""The scheduler of timeslices: Algorithm 1 as reference, and the compiled scheduler."""
