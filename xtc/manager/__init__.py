"""The controlled routers: activated, ticked, limited and released."""
