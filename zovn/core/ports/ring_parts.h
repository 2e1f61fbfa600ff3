/* The structure of a port to a guest, for the files that implement it. */
#ifndef ZOVN_PORTS_RING_PARTS_H
#define ZOVN_PORTS_RING_PARTS_H

#include "ports/port.h"
#include "ports/ring_pair.h"

/* Heads of all transmit rings have numbers of their own: those of a ring follow those of the ring
 * before it. */
struct zovn_guest_pair {
    struct zovn_ring_pair rings;
    uint32_t first;    /* number of the transmit ring's head 0 */
    uint16_t *resumed; /* heads that an earlier device had taken */
    uint32_t resumed_at, resumed_end;
};

struct zovn_ring_port {
    struct zovn_port port;
    struct zovn_guest_pair pairs[ZOVN_MOST_PAIRS];
    uint32_t count;  /* of pairs */
    uint32_t heads;  /* of all their transmit rings */
    uint32_t turn;   /* the pair that is peeked first */
    uint32_t refuse; /* the pair whose receive ring had no room last */
    bool mergeable;
    void (*notify)(void *context, uint32_t pair, bool receive);
    void (*closed)(void *context, uint32_t pair, const struct zovn_ring_pair *rings);
    void *context;
    uint64_t bad_buffers;
    uint32_t bad_in_step; /* tries that found one since the guest was last shown what was put */
};

/* Return the pair of a head's transmit ring. */
static inline struct zovn_guest_pair *zovn_ring_pair_of(struct zovn_ring_port *guest,
                                                        uint16_t head) {
    uint32_t at = guest->count - 1;
    while (head < guest->pairs[at].first)
        at--;
    return &guest->pairs[at];
}

/* Report new heads of all transmit rings, each ring's in order. */
uint32_t zovn_ring_peek(struct zovn_port *port, uint16_t *heads, uint32_t most);

/* Find those that lie in one piece. */
void zovn_ring_find_wholes(struct zovn_port *port, const uint16_t *heads, uint32_t count,
                           struct zovn_segment *wholes);

/* Copy a frame into the guest's receive buffers. */
enum zovn_put_result zovn_ring_put(struct zovn_port *port, struct zovn_frame *frame);
uint32_t zovn_ring_put_plain(struct zovn_port *port, const struct zovn_plain *frames,
                             uint32_t count);
bool zovn_ring_plain_room(struct zovn_port *port, uint32_t length);

/* A port has the first fault of its rings. */
static inline void zovn_ring_note(struct zovn_port *port, const struct zovn_split_ring *ring) {
    port->fault = port->fault ? port->fault : zovn_split_ring_fault(ring);
}

#endif
