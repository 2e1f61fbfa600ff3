/* Random numbers for fuzzing: the same seed gives the same run everywhere. */
#ifndef ZOVN_TOOLS_RANDOM_H
#define ZOVN_TOOLS_RANDOM_H

#include <stdint.h>

/* xorshift64*, Vigna 2016. The state must not be 0. */
static inline uint64_t zovn_draw(uint64_t *state, uint64_t below) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 0x2545f4914f6cdd1du >> 33) % below;
}

#endif
