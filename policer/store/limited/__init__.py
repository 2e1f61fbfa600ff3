"""The store as a limited token sees it: what is beyond its reach is not there."""
