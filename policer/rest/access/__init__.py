"""Who may do what, and how often: tokens, scopes, rate limits, and the context of handlers."""
