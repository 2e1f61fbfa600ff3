"""The daemon on each host: holds every virtual router at its setpoint by adjusting its CPU cap."""

__version__ = "0.1.0"
