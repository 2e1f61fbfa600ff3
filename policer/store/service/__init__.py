"""What the service keeps for itself: leadership, tokens, idempotency keys, webhooks."""
