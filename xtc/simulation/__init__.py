"""Simulated routers and hosts: the plant, its loads, and the closed loop on a model."""
