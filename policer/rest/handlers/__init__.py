"""The handlers, one module a resource."""
