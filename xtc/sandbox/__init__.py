"""Simulated hosts that real policers can use: real daemons and laws, and no packet that is real."""
