"""Errors of the simulator.

CoreError (zovn/errors.py)
└── EngineError     the compiled engine is missing, or has failed

A scenario that cannot be simulated is a ConfigError (common/errors.py).
"""

from zovn.errors import CoreError


class EngineError(CoreError):
    """The compiled engine is missing, or has failed: what happened, and how to fix it."""
