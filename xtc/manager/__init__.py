"""The routers that are held: activated, ticked, limited and released."""
