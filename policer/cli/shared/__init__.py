"""What the commands share: the REST client, the store, options, units, times and tables."""
