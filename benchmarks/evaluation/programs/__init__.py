"""Experiments that are benchmarks of their own: what they are run with, and what they report."""
