"""Actuators: they apply caps."""
