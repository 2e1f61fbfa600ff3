"""What routers did, second by second and minute by minute, and how their contracts were kept."""
