/* Frames on their way to the wire: a ring for each class, sent at the rate of the line in the order in
 * which they were put, but for classes that are paused. Pure. */
#ifndef ZOVN_WIRE_OUTBOUND_H
#define ZOVN_WIRE_OUTBOUND_H

#include "switch/pace.h"
#include "wire/locations.h"
#include "wire/pfc.h"

enum {
    ZOVN_LINE_FRAMES = 8, /* that may wait for the line, so that the switch chooses among classes */
    ZOVN_OUT_RING = ZOVN_LINE_FRAMES + ZOVN_MOST_HOSTS,
};

struct zovn_leaving {
    uint64_t sequence;
    uint32_t at, length; /* in its slot */
};

struct zovn_outbound {
    struct {
        uint32_t first, count;
        struct zovn_leaving frames[ZOVN_OUT_RING];
    } rings[ZOVN_PFC_CLASSES];
    struct zovn_pace pace;
    uint64_t sequence;
    uint32_t slot_bytes;
    uint8_t paused; /* classes, as bits */
    uint8_t *memory;
};

bool zovn_outbound_init(struct zovn_outbound *outbound, uint64_t rate_bps, uint32_t slot_bytes);
void zovn_outbound_free(struct zovn_outbound *outbound);

/* Return whether the line takes any frame, with so many copies; and whether the peer takes those of a
 * class, when it does. */
bool zovn_outbound_room(const struct zovn_outbound *outbound);
bool zovn_outbound_class_room(const struct zovn_outbound *outbound, uint32_t class);

/* Return where the next frame of a class is to be made, and add it as made. */
uint8_t *zovn_outbound_slot(struct zovn_outbound *outbound, uint32_t class);
void zovn_outbound_add(struct zovn_outbound *outbound, uint32_t class, uint32_t at,
                       uint32_t length);

/* Find the frame that is to be sent next; return its class, or -1 if none may be sent. */
int32_t zovn_outbound_next(const struct zovn_outbound *outbound, const uint8_t **bytes,
                           uint32_t *length);

/* Note that it was sent. */
void zovn_outbound_sent(struct zovn_outbound *outbound, uint32_t class, uint64_t now_ns);

/* Return when a frame that may be sent waits for the line until; UINT64_MAX: there is none. */
uint64_t zovn_outbound_due(const struct zovn_outbound *outbound, uint64_t now_ns);

#endif
