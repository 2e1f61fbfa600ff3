"""The policer's REST service: reads the fleet and the store, and writes what operators decide."""

from policer.rest.app import create_app
from policer.rest.settings import RestSettings

__all__ = ["RestSettings", "create_app"]
