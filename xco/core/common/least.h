// The least and the most of two rates.
#ifndef XCO_COMMON_LEAST_H
#define XCO_COMMON_LEAST_H

#include <stdint.h>

static inline uint64_t xco_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t xco_most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

#endif
