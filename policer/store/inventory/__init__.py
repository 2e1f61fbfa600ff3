"""What operators entered: hosts, contracts, classes, tenants, overrides, plans."""
