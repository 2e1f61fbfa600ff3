"""Webhooks: events are sent to endpoints, signed, and sent again until they are taken."""
