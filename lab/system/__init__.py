"""What the lab makes on this machine: namespaces, links, control groups; and their removal."""
