"""Figures of link coordination on the fabric of the lab."""
