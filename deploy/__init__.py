"""What it takes to install xtc: units, package, container image, man pages."""
