"""Figures of the controller: scheduling, control exchange, load, and simulation."""
