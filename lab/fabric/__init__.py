"""A fabric: hosts behind switches with shallow-buffered ports, in network namespaces."""
