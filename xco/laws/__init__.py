"""The published laws of rate-based congestion control: HyGenICC and SDN-GCC. Pure functions."""
