"""Fit curve, lag and cost of packets to a recording, with intervals and a quality check."""
