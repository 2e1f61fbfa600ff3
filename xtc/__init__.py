"""The daemon on each host: holds every virtual router at its setpoint by adjusting its CPU cap."""

from common import __version__ as __version__
