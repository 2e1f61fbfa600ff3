"""The compiled switch in this process: for tests, and for the probe of `zovn check`."""
