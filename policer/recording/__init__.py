"""Records what routers did: seconds, minutes, and how contracts were kept each day."""
