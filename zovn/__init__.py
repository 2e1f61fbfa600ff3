"""A virtual switch that does not drop frames for lack of room: they stay in the sender's ring."""

__version__ = "0.1.0"
