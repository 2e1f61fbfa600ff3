"""The demos: `make demo`, `make demo-xco` and `make demo-gcc`."""
