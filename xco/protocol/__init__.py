"""Messages, keys and statistics exchanged with the compiled loops."""
