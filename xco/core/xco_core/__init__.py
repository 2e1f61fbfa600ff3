"""The compiled parts of XCo: libxcosched.so, xco-controller and xco-coordinator."""
