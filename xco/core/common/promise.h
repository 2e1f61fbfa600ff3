// What of a link may be promised by guarantees.
#ifndef XCO_COMMON_PROMISE_H
#define XCO_COMMON_PROMISE_H

#include <stdint.h>

#define XCO_MBPS 1000000u

// A twentieth is always shared by weight, so that guarantees stop no one.
static inline uint64_t xco_promisable(uint64_t left_bps) {
    return left_bps - left_bps / 20;
}

#endif
