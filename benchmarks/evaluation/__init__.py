"""The papers' experiments, run again side by side, with one report of all of them."""
