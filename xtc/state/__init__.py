"""The state directory: the journal of original caps and leases, its writer and its repair."""
