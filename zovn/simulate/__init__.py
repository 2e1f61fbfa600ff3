"""Simulates partition-aggregate on hundreds of servers: virtual and physical network, lossy or not.

The engine is compiled: zovn/core/simulate. The model is in docs/reference/zovn-simulate.md.
"""
