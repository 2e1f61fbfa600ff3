"""Simulated hosts for real policers: real daemons and laws, no real packets."""
