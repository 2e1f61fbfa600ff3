"""Programs for those who develop xtc."""
