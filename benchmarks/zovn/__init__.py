"""Figures of the lossless switch."""
