"""What routers forward and what their host drops: counters read and aggregated."""
