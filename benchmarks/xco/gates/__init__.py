"""Figures of the gates: precision, the cost of a packet, the time to set one."""
