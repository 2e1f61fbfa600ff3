"""Actuators: where a cap goes."""
