"""Man pages, generated from the command line and the configuration's schema at build time."""
