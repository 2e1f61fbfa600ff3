// The clock of both loops.
#ifndef XCO_COMMON_CLOCK_H
#define XCO_COMMON_CLOCK_H

#include <stdint.h>

// Returns CLOCK_MONOTONIC in ns.
int64_t xco_now_ns(void);

#endif
