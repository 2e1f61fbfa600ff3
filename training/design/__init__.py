"""From a fit to a model: gains, the model file, predictions, and their validation on the host."""
