"""Current state of the fleet, shared by the control loop, the REST service and metrics."""
