"""Throughput of routers and drops of their host: reads and aggregates counters."""
