"""The fleet as a file: the document, what it would change, and whether hosts could keep that."""
