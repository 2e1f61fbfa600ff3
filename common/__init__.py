"""What every package may use: errors, units, command line, logging, TOML. Imports none of ours."""

__version__ = "0.1.0"
