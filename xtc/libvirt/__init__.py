"""Hypervisors through libvirt: their domains followed, their calls made off the loop."""
