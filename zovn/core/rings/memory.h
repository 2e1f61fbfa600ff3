/* A peer's memory: where its addresses lie in ours, and which of its pages we wrote to. */
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
    uint8_t *log; /* a bit for each page of the peer's addresses; NULL: nothing is logged */
    uint64_t log_bytes;
    struct zovn_region regions[ZOVN_MOST_REGIONS];
};

/* Return where `bytes` bytes from `address` on lie, or NULL if not all of them lie in one region.
 * No bytes lie nowhere. */
uint8_t *zovn_memory_at(const struct zovn_memory *memory, uint64_t address, uint64_t bytes);

/* Set the bits of the pages where these bytes lie. */
__attribute__((noinline)) void zovn_memory_log(const struct zovn_memory *memory, const void *at,
                                               uint64_t bytes);

/* Note that bytes were written; after that: a front end that clears a bit finds what was written. */
static inline void zovn_memory_written(const struct zovn_memory *memory, const void *at,
                                       uint64_t bytes) {
    if (memory->log)
        zovn_memory_log(memory, at, bytes);
}

#endif
