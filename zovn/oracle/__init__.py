"""What the compiled switch is compared with: the paper's algorithm, and a model in plain Python."""
