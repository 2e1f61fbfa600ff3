"""What hosts and routers are promised: contracts, hours, capacity, overrides, reach; pure."""
