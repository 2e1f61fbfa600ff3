"""Man pages, written from the command line and the configuration's schema at build time."""
