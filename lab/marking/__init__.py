"""A port of a lab switch that marks congestion (ECN), on kernels with or without RED."""
