"""Measure a router: its load, its meter and actuator, and the most informative caps."""
