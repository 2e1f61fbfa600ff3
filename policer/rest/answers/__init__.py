"""Answers of the service, and how they are made from the fleet."""
