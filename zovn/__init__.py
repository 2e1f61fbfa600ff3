"""The lossless virtual switch, and its overlay between hosts."""
