"""Figures of the policer: reaction, scale, a soak, and leaders that are killed."""
