"""Figures of training: coverage of intervals, lag, ratios, and sweeps side by side."""
