"""What the controller's loop decides, written to be read: oracles of the compiled strategies."""
