"""Errors, units, command line, logging and TOML for every package; imports none of them."""

__version__ = "0.1.0"
