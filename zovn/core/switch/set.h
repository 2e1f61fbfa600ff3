/* A set of ports. */
#ifndef ZOVN_SWITCH_SET_H
#define ZOVN_SWITCH_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/settings.h"

struct zovn_set {
    uint64_t words[2];
};

_Static_assert(ZOVN_MOST_PORTS <= 128, "a set has so many bits");

static inline void zovn_set_add(struct zovn_set *set, uint32_t port) {
    set->words[port / 64] |= UINT64_C(1) << port % 64;
}

static inline void zovn_set_remove(struct zovn_set *set, uint32_t port) {
    set->words[port / 64] &= ~(UINT64_C(1) << port % 64);
}

static inline bool zovn_set_has(const struct zovn_set *set, uint32_t port) {
    return set->words[port / 64] >> port % 64 & 1;
}

static inline uint32_t zovn_set_size(const struct zovn_set *set) {
    return (uint32_t)(__builtin_popcountll(set->words[0]) + __builtin_popcountll(set->words[1]));
}

static inline bool zovn_set_any(const struct zovn_set *set) {
    return set->words[0] | set->words[1];
}

/* Return whether it has more than one. */
static inline bool zovn_set_many(const struct zovn_set *set) {
    uint64_t low = set->words[0], high = set->words[1];
    return (low && high) || low & (low - 1) || high & (high - 1);
}

static inline uint32_t zovn_set_first(const struct zovn_set *set) {
    return (uint32_t)(set->words[0] ? __builtin_ctzll(set->words[0])
                                    : 64 + __builtin_ctzll(set->words[1]));
}

/* Return the next port of a set that is not empty: after the last one comes the first one. */
static inline uint32_t zovn_set_after(const struct zovn_set *set, uint32_t port) {
    uint32_t from = port + 1;
    struct zovn_set rest = *set;
    rest.words[0] &= from < 64 ? ~UINT64_C(0) << from : 0;
    rest.words[1] &= from < 64 ? ~UINT64_C(0) : ~UINT64_C(0) << (from - 64);
    return zovn_set_first(rest.words[0] | rest.words[1] ? &rest : set);
}

#endif
