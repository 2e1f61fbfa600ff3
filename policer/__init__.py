"""The policer: contracts to setpoints for a fleet."""
