/* Receive buffers of guests: which is the next one, and what is written into it. */
#ifndef ZOVN_PORTS_RING_FILL_H
#define ZOVN_PORTS_RING_FILL_H

#include <string.h>

#include "rings/chain.h"
#include "rings/prefetch.h"

/* Find the next buffer if it is one piece of memory with room for so many bytes; return its head, or -1. */
static inline int32_t zovn_ring_next_buffer(struct zovn_split_ring *ring, uint32_t bytes,
                                            struct zovn_segment *buffer) {
    int32_t head = zovn_split_ring_known(ring, 1) ? zovn_split_ring_head(ring, 0) : -1;
    if (head < 0 || !zovn_chain_one(ring, (uint16_t)head, true, buffer) || buffer->length < bytes)
        return -1;
    return head;
}

/* The guest gets it with so many bytes in it. */
static inline void zovn_ring_filled(struct zovn_split_ring *ring, int32_t head,
                                    const struct zovn_segment *buffer, uint32_t bytes) {
    zovn_memory_written(ring->memory, buffer->bytes, bytes);
    zovn_split_ring_complete(ring, (uint16_t)head, bytes);
    zovn_split_ring_take(ring, 1);
}

enum { ZOVN_RING_AHEAD = 4 }; /* buffers: enough frames to load one meanwhile */

/* Begin to load the buffer at a place behind the next one, and the descriptor of one after that. What is read
 * here is of no consequence, and an address that is wrong does no harm. */
static inline void zovn_ring_prefetch_buffer(const struct zovn_split_ring *ring, uint32_t place) {
    uint16_t mask = (uint16_t)(ring->size - 1);
    const uint16_t *entries = ring->avail->ring;
    uint16_t next = ZOVN_READ(entries[(ring->next_avail + place) & mask]) & mask;
    uint16_t later = ZOVN_READ(entries[(ring->next_avail + place + ZOVN_RING_AHEAD) & mask]) & mask;
    __builtin_prefetch(&ring->descriptors[later]);
    uint64_t address = ZOVN_READ(ring->descriptors[next].address);
    const uint8_t *bytes = zovn_memory_at(ring->memory, address, 1);
    if (bytes) {
        zovn_prefetch_to_write(bytes);
        zovn_prefetch_to_write(bytes + 64);
    }
}

/* At most 64 buffers; without merging 1, too (5.1.6.4.1). The old header has no place for it. */
static inline void zovn_ring_write_header(uint8_t *to, uint32_t bytes,
                                          const struct zovn_offload *offload, uint32_t buffers) {
    enum { COUNT_AT = 10, BYTES = 12 };
    memcpy(to, offload, sizeof *offload);
    if (bytes == BYTES) {
        to[COUNT_AT] = (uint8_t)buffers;
        to[COUNT_AT + 1] = 0;
    }
}

/* Short pieces in fixed parts, of which the last may overlap the one before: quicker than a call. What
 * a peer changes meanwhile may be copied half, as by any copy. */
static inline void zovn_ring_copy(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    enum { LEAST = 16, PART = 32, MOST = 128 };
    if (bytes < LEAST || bytes > MOST) {
        memcpy(to, from, bytes);
    } else if (bytes <= PART) {
        memcpy(to, from, LEAST);
        memcpy(to + bytes - LEAST, from + bytes - LEAST, LEAST);
    } else {
        memcpy(to, from, PART);
        for (uint32_t i = PART; i + PART < bytes; i += PART)
            memcpy(to + i, from + i, PART);
        memcpy(to + bytes - PART, from + bytes - PART, PART);
    }
}

#endif
