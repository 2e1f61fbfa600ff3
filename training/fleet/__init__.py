"""Sweeps several hosts in parallel, and reports on all of them."""
