"""The configuration: its schema, its file, the plan of each router, and checks."""
