"""What happened: audit, events, points of routers, days of contracts, punishments."""
