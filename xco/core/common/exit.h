// How the programs end. xco/controller/supervise.py and xco/coordinator/shell.py turn the codes into
// typed errors.
#ifndef XCO_COMMON_EXIT_H
#define XCO_COMMON_EXIT_H

enum xco_exit {
    XCO_EXIT_OK = 0,          // it was told to stop
    XCO_EXIT_FAILED = 1,      // something broke: start again
    XCO_EXIT_CONFIG = 2,      // the configuration cannot be used: starting again does not help
    XCO_EXIT_UNSUPPORTED = 3, // the kernel cannot do it
    XCO_EXIT_DENIED = 4,      // privileges are missing
    XCO_EXIT_GONE = 5,        // there is no such interface
    XCO_EXIT_FOREIGN = 6,     // the queues of another program are in the way
    XCO_EXIT_BUSY = 7,        // a coordinator is running
};

#endif
