/* What a schedule is made of: nodes with their links, hosts, V2V flows, and where flows wait. */
#ifndef XCO_SCHEDULE_INSIDE_H
#define XCO_SCHEDULE_INSIDE_H

#include <stdbool.h>

#include "schedule.h"

enum { UP = 0, DOWN = 1 }; /* the directed links between a node and its parent */
enum { MOST_CLASSES = 64 };

/* A switch or host: one line of cache has all that a walk along a path needs. */
struct node {
    uint32_t parent; /* XCO_NONE: the root */
    uint32_t depth;
    uint64_t capacity[2];
    uint64_t free[2];  /* capacity less what is granted */
    uint64_t held[2];  /* what is kept free for the owner */
    uint32_t owner[2]; /* the flow that the link is reserved for */
};

enum flow_state {
    UNUSED = 0, /* of the pool's free list */
    RESTING,    /* known, not backlogged */
    WAITING,    /* in a queue */
    STUCK,      /* backlogged, but its path can never carry what its host sends */
    RESERVED,   /* waiting, in no queue: it is tried whenever anything on its path gets free */
    SENDING,    /* granted */
};

/* What a host has for one destination. All that events touch most is one line of cache. */
struct flow {
    _Alignas(64) uint32_t host;
    uint32_t destination;
    uint32_t queue;          /* where it waits */
    uint32_t next;           /* in its queue: behind it, or its next sibling in the heap */
    uint32_t previous;       /* in its queue: before it, or its elder sibling or parent */
    uint32_t child;          /* in the heap */
    uint32_t older, younger; /* in the order of waiting */
    uint64_t full_rate;      /* when all is free; 0: it is stuck */
    uint64_t order;          /* counts waits */
    double share;   /* log2 of what it was served by weight; recent service counts more */
    uint32_t group; /* the last backlog group that it was in */
    uint8_t state;  /* enum flow_state */
    uint8_t rate_class;
    bool weighted; /* its weight was set: it is never forgotten */
    bool drained;  /* granted, and not backlogged any more */

    uint64_t since_ns; /* when it began to wait, or to rest */
    double weight;
    uint32_t after, before; /* the other flows of its host, in a ring */
};

struct host {
    uint32_t sending;  /* a flow */
    uint32_t held_for; /* a flow: no other of this host is granted */
    uint32_t flows;    /* the first of its ring */
    uint32_t backlog;  /* flows that are not resting, nor drained */
    uint64_t rate;
    uint64_t started_ns;
    uint64_t event; /* at which it was granted something last */
    double weight;  /* of flows that become known */
};

struct queue {
    uint32_t head; /* or the heap's root */
    uint32_t tail;
};

struct xco_schedule {
    uint32_t host_count;
    uint32_t node_count;
    uint32_t link_count;
    uint32_t classes;
    bool fair;
    bool limit_rates;
    uint64_t threshold_ns;
    uint64_t patience_ns;
    double memory_ns;
    double least_share;

    struct node *nodes;
    struct host *hosts;
    uint32_t *directed; /* by directed link: 2 * node + UP or DOWN */
    uint8_t class_of[MOST_CLASSES];       /* by log2 of a rate */
    uint64_t class_least[MOST_CLASSES];   /* the least that a flow of this class may be granted */

    struct queue *queues; /* one for each link and class, then one for each host */
    uint32_t oldest, youngest; /* waiting flows that can ever be granted, in the order of waiting */
    struct queue resting;      /* XCO_FAIR: who rests longest first */
    uint32_t rest_count;
    uint32_t returned;         /* tried at the link they wait at and too large for what is left */

    struct flow *flows;
    uint32_t flow_room;
    uint32_t flow_free; /* first unused */
    uint32_t flow_count;
    uint32_t *table; /* open addressing; XCO_NONE: empty */
    uint32_t table_bits;

    /* Of the event at hand. */
    uint32_t *sources; /* links and hosts that got free: 2 * node + direction, then hosts */
    bool *is_source;
    uint32_t source_count;
    uint32_t owners_tried; /* of the sources */
    uint32_t first_source; /* published: those before are full */
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

static inline uint32_t queue_of_link(const struct xco_schedule *s, uint32_t link, uint32_t class) {
    return link * s->classes + class;
}

static inline uint32_t queue_of_host(const struct xco_schedule *s, uint32_t host) {
    return link_sources(s) * s->classes + host;
}

/* The least that is worth granting to a flow with this full rate. */
static inline uint64_t least_rate(const struct xco_schedule *s, uint64_t full_rate) {
    if (!s->limit_rates || s->least_share >= 1.0)
        return full_rate;
    uint64_t least = (uint64_t)((double)full_rate * s->least_share);
    return least ? least : 1;
}

/* schedule_flows.c: the table of flows. */
int flows_room(struct xco_schedule *s, size_t more); /* 0, or -ENOMEM and nothing changed */
uint32_t flow_find(const struct xco_schedule *s, uint32_t host, uint32_t destination);
uint32_t flow_make(struct xco_schedule *s, uint32_t host, uint32_t destination);
void flow_forget(struct xco_schedule *s, uint32_t flow);
void ring_last(struct xco_schedule *s, uint32_t flow); /* make it the last of its host's flows */

/* schedule_queues.c: where flows wait. */
void queue_push(struct xco_schedule *s, uint32_t queue, uint32_t flow);
void queue_push_front(struct xco_schedule *s, uint32_t queue, uint32_t flow);
void queue_remove(struct xco_schedule *s, uint32_t flow);
bool flow_before(const struct xco_schedule *s, uint32_t a, uint32_t b);
void age_push(struct xco_schedule *s, uint32_t flow);
void age_remove(struct xco_schedule *s, uint32_t flow);
void rest_push(struct xco_schedule *s, uint32_t flow);
void rest_remove(struct xco_schedule *s, uint32_t flow);

/* schedule_settle.c: who is granted what after something got free. */
void source_open(struct xco_schedule *s, uint32_t source);
void flow_wait(struct xco_schedule *s, uint32_t flow);
void flow_drop(struct xco_schedule *s, uint32_t flow);
void slice_end(struct xco_schedule *s, uint32_t host);
void settle(struct xco_schedule *s);

#endif
