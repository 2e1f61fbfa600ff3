"""Webhooks: what happens is told to endpoints elsewhere, signed, and again until they take it."""
