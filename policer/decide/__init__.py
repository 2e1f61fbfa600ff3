"""One round of one host, from telemetry to orders: demand, allocation, evidence; pure."""
