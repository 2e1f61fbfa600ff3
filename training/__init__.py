"""Measures what a host does at each cap, fits its model, and designs the gains of its loop."""
