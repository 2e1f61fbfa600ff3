"""The control laws and the loop of one router: pure functions, without I/O."""
