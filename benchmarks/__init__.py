"""One program for each figure that README quotes, and the demo."""
