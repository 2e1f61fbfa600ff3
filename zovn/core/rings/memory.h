/* A peer's memory: where its addresses lie in ours. */
#ifndef ZOVN_RINGS_MEMORY_H
#define ZOVN_RINGS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

enum { ZOVN_MOST_REGIONS = 64 };

struct zovn_region {
    uint64_t address; /* the peer's */
    uint64_t bytes;
    uint8_t *base; /* ours */
};

struct zovn_memory {
    uint32_t count;
    bool lost; /* the peer has withdrawn it: what is read there means nothing */
    struct zovn_region regions[ZOVN_MOST_REGIONS];
};

/* Return where `bytes` bytes from `address` on lie, or NULL if not all of them lie in one region.
 * No bytes lie nowhere. */
uint8_t *zovn_memory_at(const struct zovn_memory *memory, uint64_t address, uint64_t bytes);

#endif
