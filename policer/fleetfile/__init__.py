"""The fleet as a file: the document, its changes, and the check against capacity."""
