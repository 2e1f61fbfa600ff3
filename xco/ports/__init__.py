"""Counters of switch ports, read and sent to the controller: `xco port-agent`."""
