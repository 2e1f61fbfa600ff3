"""What the controller's loop decides, written for reading: oracles of the compiled strategies."""
