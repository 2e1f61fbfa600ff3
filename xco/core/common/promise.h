// What a link can promise by guarantees, and its part for one that is guaranteed something.
#ifndef XCO_COMMON_PROMISE_H
#define XCO_COMMON_PROMISE_H

#include <stdint.h>

#include "common/least.h"

#define XCO_MBPS 1000000u

// A twentieth is always shared by weight, so that guarantees stop no one.
static inline uint64_t xco_promisable(uint64_t left_bps) {
    return left_bps - left_bps / 20;
}

// Returns a guarantee as far as a rate permits, in whole Mb/s, rounded up.
static inline uint32_t xco_promise_cut(uint32_t guarantee_mbps, uint64_t rate_bps) {
    return (uint32_t)xco_least(guarantee_mbps, rate_bps / XCO_MBPS + (rate_bps % XCO_MBPS > 0));
}

// Returns what is given of a guarantee where the sum of all, `load_mbps`, may exceed what can be
// promised: then each gets its part of that.
static inline uint64_t xco_promise_part(uint32_t guarantee_mbps, uint64_t promisable_bps,
                                        uint64_t load_mbps) {
    if (load_mbps <= promisable_bps / XCO_MBPS) {
        return (uint64_t)guarantee_mbps * XCO_MBPS;
    }
    return guarantee_mbps * (promisable_bps / load_mbps) +
           guarantee_mbps * (promisable_bps % load_mbps) / load_mbps;
}

#endif
