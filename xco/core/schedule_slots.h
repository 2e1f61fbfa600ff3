/* The aligned mode's own: backlog as one row of bits a host, or as the hosts' rings of flows. */
#ifndef XCO_SCHEDULE_SLOTS_H
#define XCO_SCHEDULE_SLOTS_H

#include "schedule_paths.h"

/* Up to so many hosts (8 MiB of bits) backlog is kept as bits; beyond, rows are too sparse. */
enum { MOST_DENSE = 8192 };

struct slots {
    uint32_t words;    /* of a row; 0: not in bits */
    uint32_t first;    /* the host that chooses first in the next slot */
    uint64_t least;    /* a link with less left carries no flow at all */
    bool plain;        /* no host is faster than any link: each flow's full rate is its host's */
    bool fresh;        /* nothing has changed since the last slot */
    uint64_t *rows;    /* by host: its destinations */
    uint64_t *open;    /* destinations whose own link has something left */
    uint32_t *cursor;  /* by host: where to go on looking */
    uint32_t *turn;    /* the same, for when it chooses first */
    uint32_t *backlog; /* by host: how many destinations */
    uint32_t *sending; /* by host: the destination, or XCO_NONE */
};

static inline uint64_t *row_of(const struct slots *slots, uint32_t host) {
    return slots->rows + (size_t)host * slots->words;
}

/* What the host is granted if it sends to this destination in this slot, or 0. */
static inline uint64_t slot_rate(const struct xco_schedule *s, uint32_t host,
                                 uint32_t destination) {
    struct flow flow = {.host = host, .destination = destination};
    flow.full_rate = s->slots->plain ? s->nodes[host].capacity[UP]
                                     : path_full_rate(s, host, destination);
    uint64_t rate = 0;
    if (flow.full_rate == 0 || path_blocked(s, &flow, &rate) != XCO_NONE)
        return 0;
    return rate;
}

#endif
