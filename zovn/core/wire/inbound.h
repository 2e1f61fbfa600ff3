/* What came from the wire and waits to be forwarded: a buffer for each class, in bytes of the line. */
#ifndef ZOVN_WIRE_INBOUND_H
#define ZOVN_WIRE_INBOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/pfc.h"

enum {
    ZOVN_LINE_OVERHEAD = 24, /* preamble, checksum and gap */
    ZOVN_LINE_LEAST = 84, /* what the shortest frame takes on the line */
    ZOVN_MOST_BUFFER = 4096 * ZOVN_LINE_LEAST, /* of a class, for heads are 15 bits */
};

/* A frame that is held. */
struct zovn_held {
    uint8_t *bytes;
    uint32_t length, charged;
    uint8_t buffer; /* the class that is charged */
    uint8_t class; /* by its tag, or ZOVN_VXLAN_UNTAGGED */
};

struct zovn_inbound {
    uint32_t count, slot_bytes;
    uint64_t buffer_bytes; /* of each class */
    uint64_t held_bytes[ZOVN_PFC_CLASSES];
    uint8_t *memory;
    struct zovn_held *held; /* by head */
    uint16_t *unused; /* heads: a stack; there is one more, that is only received into */
    uint16_t *order; /* heads that came: a ring */
    uint32_t unused_count;
    uint64_t posted, peeked;
};

/* Return how many bytes of the line a frame takes. */
uint32_t zovn_line_bytes(uint32_t length);

/* Return false without memory. */
bool zovn_inbound_init(struct zovn_inbound *inbound, uint64_t buffer_bytes, uint32_t slot_bytes);
void zovn_inbound_free(struct zovn_inbound *inbound);

/* Return where the next frame may be received: `slot_bytes`. */
uint8_t *zovn_inbound_room(struct zovn_inbound *inbound);

/* Hold what lies there; return false if the buffer of its class is full. */
bool zovn_inbound_hold(struct zovn_inbound *inbound, const struct zovn_held *frame);

/* Report up to so many held heads, each once. */
uint32_t zovn_inbound_peek(struct zovn_inbound *inbound, uint16_t *heads, uint32_t most);

void zovn_inbound_release(struct zovn_inbound *inbound, uint16_t head);

#endif
