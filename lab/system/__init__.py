"""System objects of the lab: creates and removes namespaces, links and control groups."""
