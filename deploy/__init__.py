"""Parts of an installation of xtc: units, package, container image, man pages."""
