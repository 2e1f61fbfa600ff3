"""What is known of the fleet now, shared by the control loop, the REST service and metrics."""
