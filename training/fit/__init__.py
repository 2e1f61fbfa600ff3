"""Fits the curve, the lag and the cost of packets to a recording, with intervals and a verdict."""
