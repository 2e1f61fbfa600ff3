"""The settings: their schema, their file, and checks of the files that they name."""
