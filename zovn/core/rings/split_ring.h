/* A split virtqueue as the device sees it: what the driver makes available, and gets back.
 *
 * The driver is not trusted. Each of its fields is read once; what was read is checked and used.
 * A ring that breaks the protocol gets a fault, and offers nothing from then on. */
#ifndef ZOVN_RINGS_SPLIT_RING_H
#define ZOVN_RINGS_SPLIT_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "rings/layout.h"
#include "rings/memory.h"

enum zovn_fault {
    ZOVN_SOUND = 0,
    ZOVN_AVAIL_JUMP = 1,   /* more is available than the ring has entries */
    ZOVN_HEAD_RANGE = 2,   /* a head is no index of a descriptor */
    ZOVN_HEAD_TWICE = 3,   /* a head is available that has not been given back */
    ZOVN_PEER_GONE = 4, /* what connects to the peer was removed; of ports without such a ring */
    ZOVN_MEMORY_GONE = 5, /* the peer has withdrawn the ring's memory */
};

struct zovn_inflight;

struct zovn_split_ring {
    struct zovn_descriptor *descriptors;
    struct zovn_avail *avail;
    struct zovn_used *used;
    const struct zovn_memory *memory;
    uint32_t size; /* a power of two, at most 32768 */
    bool event_index;
    bool indirect;
    uint16_t next_avail;
    uint16_t next_used;
    uint16_t published;
    uint16_t known; /* heads that were available when that was read last, and are not taken */
    enum zovn_fault fault;
    struct zovn_inflight *inflight; /* what is taken and not given back; NULL: not recorded */
    uint64_t taken;                 /* chains so far, as the record counts them */
};

/* Return whether size and alignment are those of a ring. */
bool zovn_split_ring_valid(const struct zovn_split_ring *ring);

/* Return its fault, or that of its memory. */
enum zovn_fault zovn_split_ring_fault(const struct zovn_split_ring *ring);

/* Return how many heads are available and not taken; 0 with a fault. */
uint32_t zovn_split_ring_available(struct zovn_split_ring *ring);

/* Return how many it is known of. The driver writes its index on another CPU: it is read again only if so many
 * are wanted. */
static inline uint32_t zovn_split_ring_known(struct zovn_split_ring *ring, uint32_t wanted) {
    return ring->known >= wanted && !ring->fault ? ring->known : zovn_split_ring_available(ring);
}

/* Return the head at this place behind the next one, or -1 with a fault. */
int32_t zovn_split_ring_head(struct zovn_split_ring *ring, uint32_t place);

/* Take the next heads, which are available. */
static inline void zovn_split_ring_take(struct zovn_split_ring *ring, uint32_t count) {
    ring->next_avail = (uint16_t)(ring->next_avail + count);
    ring->known = (uint16_t)(ring->known - count);
}

/* Give a chain back; the driver sees it after `zovn_split_ring_publish`. */
void zovn_split_ring_complete(struct zovn_split_ring *ring, uint16_t head, uint32_t written);

/* Show what was given back; return whether the driver wants a notification (2.7.7). */
bool zovn_split_ring_publish(struct zovn_split_ring *ring);

/* Ask the driver to notify of what it makes available from now on, or not to (2.7.10). Of what came
 * before it may not notify: look once more before a sleep. */
void zovn_split_ring_ask(struct zovn_split_ring *ring, bool notify);

#endif
