"""Measures a router: its load, its meter and actuator, and the caps that tell most."""
