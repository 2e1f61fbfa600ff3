"""Contracts of hosts and routers: terms, hours, capacity, overrides, reach; pure."""
