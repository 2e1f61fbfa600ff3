"""Reads the history back: points of a router, replays of plans, and SLA reports."""
