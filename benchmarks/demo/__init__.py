"""The demos: `make demo`, `make demo-xco`, `make demo-gcc` and `make demo-zovn`."""
