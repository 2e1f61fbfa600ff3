/* The parts of a schedule: nodes with their links, hosts, V2V flows, and where flows wait. */
#ifndef XCO_SCHEDULER_INTERNAL_H
#define XCO_SCHEDULER_INTERNAL_H

#include <stdbool.h>

#include "scheduler/schedule.h"

enum { UP = 0, DOWN = 1 }; /* the directed links between a node and its parent */

/* A switch or host: one cache line has everything that a walk along a path needs. */
struct node {
    uint32_t parent; /* XCO_NONE: the root */
    uint32_t depth;
    uint64_t capacity[2];
    uint64_t free[2];  /* capacity minus grants */
    uint64_t held[2];  /* capacity reserved for the owner */
    uint32_t owner[2]; /* the flow that the link is reserved for */
};

enum flow_state {
    UNUSED = 0, /* of the pool's free list */
    RESTING,    /* known, not backlogged */
    WAITING,    /* backlogged, not granted */
    STUCK,      /* backlogged, but its path can never carry what its host sends */
    RESERVED,   /* waiting, not parked: tried whenever anything on its path becomes free */
    SENDING,    /* granted */
};

/* A host's state for one destination. The fields that events touch most are in one cache line. */
struct flow {
    _Alignas(64) uint32_t host;
    uint32_t destination;
    uint32_t place;          /* the heap where it is parked, AT_REST or XCO_NONE */
    uint32_t next; /* in the heap its next sibling, at rest the one that rests after it */
    uint32_t previous; /* in the heap its elder sibling or parent, at rest its predecessor */
    uint32_t child; /* in the heap */
    uint32_t older, younger; /* in the order of waiting */
    uint64_t full_rate; /* when all links are free; 0: it is stuck */
    uint64_t order; /* counts waits */
    double rank; /* the lowest is granted first: the share of XCO_FAIR, or the order */
    uint32_t rate_class; /* of its full rate, in ascending order */
    uint8_t state; /* enum flow_state */
    bool weighted; /* its weight was set: never forget it */
    bool drained; /* granted, and no longer backlogged */

    uint64_t since_ns; /* when it began to wait or rest */
    double weight;
    uint32_t group; /* the last backlog group that it was in */
    uint32_t after, before; /* the other flows of its host, in a ring */
    uint32_t at_source, at_target; /* its entries in the backlogs of both its ends */
    uint32_t up, down; /* the links at the top of its path, if both are between switches */
};

struct host {
    uint32_t sending; /* a flow */
    uint32_t held_for; /* a flow: no other of this host is granted */
    uint32_t flows; /* the first of its ring */
    uint32_t backlog; /* number of flows not resting or drained */
    uint64_t rate;
    uint64_t started_ns;
    uint64_t event; /* event of its last grant */
    double weight; /* of flows added later */
};

/* The backlog of a host, or for a host, unordered: what events read, contiguous. */
struct entry {
    uint32_t flow;
    uint32_t peer; /* the other end */
    double rank; /* of the flow */
};

enum { FIRST_ENTRIES = 4 };

struct backlog {
    struct entry *entries; /* `first`, or an allocation while there are more */
    uint32_t count, room;
    struct entry first[FIRST_ENTRIES];
};

/* A link or host that became free in this event, and the first in rank of those to try. */
struct source {
    uint32_t what; /* 2 * node + direction, then hosts */
    uint32_t best; /* a flow that fits, or XCO_NONE */
    bool done; /* nothing fits, until it is reopened */
};

/* The switches directly below a node. Flows that climb to it from one and descend to another are
 * parked by both, so that each link's end finds those that the other link does not block. */
struct siblings {
    uint32_t first, count; /* in `children` */
    uint32_t pairs; /* the first place of those for two of them */
};

struct queue {
    uint32_t head, tail;
};

static const uint32_t AT_REST = XCO_NONE - 1;

/* Tables for the shares of service, scheduler/shares.c. */
enum { SHARE_STEPS = 54 * 64 + 2, LOGARITHMS = 256 };

struct logarithm {
    uint64_t bits; /* of the double that it belongs to */
    double log2;
};

struct shares {
    double per_ns; /* halvings */
    double sum[SHARE_STEPS];
    struct logarithm known[LOGARITHMS];
};

struct xco_schedule {
    uint32_t host_count;
    uint32_t node_count;
    uint32_t link_count;
    bool fair;
    bool limit_rates;
    uint64_t threshold_ns;
    uint64_t patience_ns;
    double memory_ns;
    double least_share;

    struct node *nodes;
    struct host *hosts;
    uint32_t *directed; /* by directed link: 2 * node + UP or DOWN */
    uint64_t *class_rate; /* full rates that flows can have, ascending */
    uint32_t classes;

    uint32_t *parked; /* roots of heaps, by place, see `place_of_link` */
    size_t place_count;
    uint32_t *paired; /* by link: number parked by it and another */
    struct siblings *siblings; /* by node */
    uint32_t *children; /* switches below switches, contiguous */
    uint32_t *ordinal; /* of a node among its siblings */
    struct backlog *from, *to; /* by host */
    size_t entry_room; /* of all backlogs */
    bool *ready; /* by host: it is idle, and reserved for no flow */
    bool *room; /* by host: its link has room for the smallest flow */
    uint32_t oldest, youngest; /* waiting flows that can ever be granted, by time of waiting */
    struct queue resting; /* XCO_FAIR: the longest at rest first */
    uint32_t rest_count;

    struct shares shares;

    struct flow *flows;
    uint32_t flow_room;
    uint32_t flow_free; /* first unused */
    uint32_t flow_count;
    uint32_t *table; /* open addressing; XCO_NONE: empty */
    uint32_t table_bits;

    /* Of the present event. */
    struct source *sources;
    uint32_t *source_at; /* by what it is: 1 + its index, 0 for none */
    uint32_t source_count;
    uint32_t owners_tried; /* of the sources */
    uint64_t now_ns;
    uint64_t event;
    uint64_t orders;
    uint32_t group;
    struct xco_grant *grants;
    int grant_count;
};

static inline uint32_t link_sources(const struct xco_schedule *s) {
    return 2 * s->node_count;
}

/* Whether a link ends at a host: flows that wait for it are in that host's backlogs. */
static inline bool is_hosts(const struct xco_schedule *s, uint32_t link) {
    return link < 2 * s->host_count;
}

/* Places are heaps of parked flows of one class: first by link between switches, then by pairs. */
static inline uint32_t place_of_link(const struct xco_schedule *s, uint32_t link, uint32_t class) {
    return (link - 2 * s->host_count) * s->classes + class;
}

static inline uint32_t first_pair(const struct xco_schedule *s) {
    return 2 * (s->node_count - s->host_count) * s->classes;
}

static inline uint32_t place_of_pair(const struct xco_schedule *s, uint32_t up, uint32_t down,
                                     uint32_t class) {
    const struct siblings *all = &s->siblings[s->nodes[up >> 1].parent];
    uint32_t pair = s->ordinal[up >> 1] * all->count + s->ordinal[down >> 1];
    return all->pairs + pair * s->classes + class;
}

/* The least rate worth granting to a flow with this full rate. */
static inline uint64_t least_rate(const struct xco_schedule *s, uint64_t full_rate) {
    if (!s->limit_rates || s->least_share >= 1.0)
        return full_rate;
    uint64_t least = (uint64_t)((double)full_rate * s->least_share);
    return least ? least : 1;
}

/* Whether flow a comes before b: less service by weight under XCO_FAIR, otherwise longer wait. */
static inline bool flow_before(const struct xco_schedule *s, uint32_t a, uint32_t b) {
    const struct flow *x = &s->flows[a], *y = &s->flows[b];
    if (x->rank < y->rank || x->rank > y->rank)
        return x->rank < y->rank;
    return x->order < y->order;
}

/* scheduler/flows.c: the table of flows. */
int flows_room(struct xco_schedule *s, size_t more); /* 0, or -ENOMEM and nothing changed */
uint32_t flow_find(const struct xco_schedule *s, uint32_t host, uint32_t destination);
uint32_t flow_make(struct xco_schedule *s, uint32_t host, uint32_t destination);
void flow_forget(struct xco_schedule *s, uint32_t flow);
void ring_last(struct xco_schedule *s, uint32_t flow); /* make it the last of its host's flows */

/* scheduler/queues.c: where flows are parked, and in which order they wait or rest. */
void flow_park(struct xco_schedule *s, uint32_t flow, uint32_t link);
bool place_blocks(const struct xco_schedule *s, const struct flow *flow);
void heap_leave(struct xco_schedule *s, uint32_t flow);
static inline void flow_unpark(struct xco_schedule *s, uint32_t flow) {
    if (s->flows[flow].place != XCO_NONE)
        heap_leave(s, flow);
}

void age_push(struct xco_schedule *s, uint32_t flow);
void age_remove(struct xco_schedule *s, uint32_t flow);
void rest_push(struct xco_schedule *s, uint32_t flow);
void rest_remove(struct xco_schedule *s, uint32_t flow);

/* scheduler/parking.c: parts of a new schedule; 0 or -ENOMEM. */
int classes_make(struct xco_schedule *s, const struct xco_schedule_options *o);
int siblings_make(struct xco_schedule *s);

/* scheduler/backlog.c: the backlog, by source and by destination. */
void backlog_init(struct backlog *backlog);
void backlog_free(struct backlog *backlog);
int backlog_room(struct xco_schedule *s, uint32_t host, const uint32_t *destinations,
                 size_t count); /* 0, or -ENOMEM and nothing changed */
void backlog_add(struct xco_schedule *s, uint32_t flow);
void backlog_remove(struct xco_schedule *s, uint32_t flow);
void backlog_rank(struct xco_schedule *s, uint32_t flow); /* its rank has changed */

/* scheduler/shares.c: a share is log2 of the service; each addition is above 0. */
void shares_init(struct shares *shares, double memory_ns);
double share_more(struct shares *shares, double share, double served, uint64_t now_ns);

/* scheduler/grants.c: how grants begin and end, and reservations. */
void source_open(struct xco_schedule *s, uint32_t source);
void flow_wait(struct xco_schedule *s, uint32_t flow);
void flow_drop(struct xco_schedule *s, uint32_t flow);
void slice_end(struct xco_schedule *s, uint32_t host);
void grant(struct xco_schedule *s, uint32_t flow, uint64_t rate);
bool can_preempt(struct xco_schedule *s, uint32_t flow, uint64_t *rate);
void preempt(struct xco_schedule *s, uint32_t flow, uint64_t rate);
bool owner_fits(const struct xco_schedule *s, const struct flow *flow);
void hold(struct xco_schedule *s, uint32_t flow);

/* scheduler/settle.c: new grants after something became free. */
void settle(struct xco_schedule *s);

#endif
