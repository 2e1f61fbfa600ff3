"""The policer's REST service: reads the fleet and the store, and writes operators' decisions."""

from policer.rest.access.settings import RestSettings
from policer.rest.app import create_app

__all__ = ["RestSettings", "create_app"]
