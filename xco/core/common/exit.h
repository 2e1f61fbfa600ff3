// Exit codes of the programs. xco/controller/supervise.py and xco/coordinator/shell.py turn them
// into typed errors.
#ifndef XCO_COMMON_EXIT_H
#define XCO_COMMON_EXIT_H

enum xco_exit {
    XCO_EXIT_OK = 0,          // stopped on request
    XCO_EXIT_FAILED = 1,      // failure: restart
    XCO_EXIT_CONFIG = 2,      // the configuration cannot be used: a restart does not help
    XCO_EXIT_UNSUPPORTED = 3, // the kernel does not support it
    XCO_EXIT_DENIED = 4,      // privileges are missing
    XCO_EXIT_GONE = 5,        // there is no such interface
    XCO_EXIT_FOREIGN = 6,     // another program's queues are in the way
    XCO_EXIT_BUSY = 7,        // a coordinator is running
};

#endif
