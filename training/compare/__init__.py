"""How fast one host is compared with another, and models transferred by that."""
