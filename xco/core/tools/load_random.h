// Random numbers of the load generator: the same in each run.
#ifndef XCO_TOOLS_LOAD_RANDOM_H
#define XCO_TOOLS_LOAD_RANDOM_H

#include <stdint.h>

// Returns a number below `below`; the state is not 0.
static inline uint64_t xco_load_draw(uint64_t *state, uint64_t below) { // xorshift64
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % below;
}

#endif
