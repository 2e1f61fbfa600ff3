"""The compiled switch in this process: for tests and measurements, not for a host's frames."""
