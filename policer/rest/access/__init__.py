"""Access control: tokens, scopes, rate limits, and the context of handlers."""
