/* Finishes in software what a sender left to its destination, and the destination does not take.
 *
 * All that this needs of a frame was checked when it was classified. Sums are made of bytes that a
 * hostile sender may change until they are copied: such a frame arrives with a wrong checksum. */
#ifndef ZOVN_SWITCH_OFFLOAD_H
#define ZOVN_SWITCH_OFFLOAD_H

#include "switch/facts.h"
#include "switch/segment.h"

/* A frame's headers when it is finished. They are part of the frame. */
struct zovn_finished {
    struct zovn_facts facts;
    uint8_t head[ZOVN_MOST_HEADERS];
};

/* Return whether a frame can go to a port that takes these offloads. */
bool zovn_offload_fits(const struct zovn_facts *facts, uint32_t takes);

/* Return how many bytes of a frame go to such a port next, after so many bytes of its payload. */
uint32_t zovn_offload_length(const struct zovn_facts *facts, uint32_t takes, uint32_t done);

/* Return how many bytes of its payload these are, if more follow; else 0. */
uint32_t zovn_offload_step(const struct zovn_facts *facts, uint32_t takes, uint32_t done);

/* Make a frame what goes to such a port next; return what is to be known of it then. */
const struct zovn_facts *zovn_offload_finish(struct zovn_finished *finished,
                                             const struct zovn_facts *facts, uint32_t takes,
                                             uint32_t done, struct zovn_frame *frame);

#endif
