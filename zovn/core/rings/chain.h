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
bool zovn_chain_one(const struct zovn_split_ring *ring, uint16_t head, bool writable,
                    struct zovn_segment *to);

#endif
