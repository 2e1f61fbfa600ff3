/* A chain of descriptors as a list of segments of memory. */
#ifndef ZOVN_RINGS_CHAIN_H
#define ZOVN_RINGS_CHAIN_H

#include "rings/frame.h"
#include "rings/split_ring.h"

/* Walk the chain at `head`, which is below the ring's size, and put its segments into `to`, at most
 * `most`. Return their number, or -1 for a chain that is malformed: a descriptor that is empty, out
 * of memory or of the wrong direction, a loop, a bad indirect table, or too many segments. */
int32_t zovn_chain(const struct zovn_split_ring *ring, uint16_t head, bool writable,
                   struct zovn_segment *to, uint32_t most);

/* Find the memory of a chain of one descriptor, written or read by the device; return false for any
 * other chain. */
static inline bool zovn_chain_one(const struct zovn_split_ring *ring, uint16_t head, bool writable,
                                  struct zovn_segment *to) {
    const struct zovn_descriptor *at = &ring->descriptors[head];
    uint64_t address = ZOVN_READ(at->address);
    uint32_t length = ZOVN_READ(at->length);
    uint16_t flags = ZOVN_READ(at->flags), wanted = writable ? ZOVN_WRITE : 0;
    if ((flags & (ZOVN_WRITE | ZOVN_NEXT | ZOVN_INDIRECT)) != wanted)
        return false;
    *to = (struct zovn_segment){zovn_memory_at(ring->memory, address, length), length};
    return to->bytes;
}

#endif
