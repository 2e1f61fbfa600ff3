"""Webhooks: sends signed events to endpoints, with retries until they are accepted."""
