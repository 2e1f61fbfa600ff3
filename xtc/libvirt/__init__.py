"""Hypervisors through libvirt: tracks their domains, and makes their calls off the loop."""
