"""Requests and responses: bodies, problems, entity tags, pages, addresses of clients."""
