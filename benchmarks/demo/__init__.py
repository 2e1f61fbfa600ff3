"""The demos: `make demo` and `make demo-xco`."""
