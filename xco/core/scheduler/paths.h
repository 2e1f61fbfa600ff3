/* Walks along the path between two hosts: up from the source, down to the destination. */
#ifndef XCO_SCHEDULER_PATHS_H
#define XCO_SCHEDULER_PATHS_H

#include "scheduler/internal.h"

/* One step of a walk: the two ends climb to where they meet, the deeper one first. */
struct walk {
    uint32_t up;
    uint32_t down;
};

/* Advance by one directed link, 2 * node + UP or DOWN; false: the whole path is done. The
 * destination's link comes first: it blocks most of the flows that have to wait. */
static inline bool walk_next(const struct node *nodes, struct walk *at, uint32_t *link) {
    if (at->up == at->down)
        return false;
    uint32_t *end = nodes[at->down].depth >= nodes[at->up].depth ? &at->down : &at->up;
    *link = 2 * *end + (end == &at->down ? DOWN : UP);
    *end = nodes[*end].parent;
    return true;
}

#define FOR_PATH(nodes, source, destination, link) \
    for (struct walk walk_ = {(source), (destination)}; walk_next((nodes), &walk_, &(link));)

static inline uint64_t link_free(const struct xco_schedule *s, uint32_t link) {
    return s->nodes[link >> 1].free[link & 1];
}

/* Capacity of a link for flows without its reservation. */
static inline uint64_t link_open(const struct xco_schedule *s, uint32_t link) {
    const struct node *node = &s->nodes[link >> 1];
    uint64_t free = node->free[link & 1], held = node->held[link & 1];
    return free > held ? free - held : 0;
}

/* The first link that cannot carry a flow now, or XCO_NONE and the rate to grant. */
static inline uint32_t path_blocked(const struct xco_schedule *s, const struct flow *flow,
                                    uint64_t *rate) {
    uint64_t least = least_rate(s, flow->full_rate), open = flow->full_rate;
    uint32_t link, blocked = XCO_NONE;
    FOR_PATH(s->nodes, flow->host, flow->destination, link) {
        uint64_t here = link_open(s, link);
        if (here < least && link < 2 * s->host_count)
            return link;
        if (here < least)
            blocked = link;
        open = here < open ? here : open;
    }
    *rate = open;
    return blocked;
}

/* The two links where a path turns from up to down, if both are between switches. */
static inline void path_top(const struct xco_schedule *s, uint32_t host, uint32_t destination,
                            uint32_t *up, uint32_t *down) {
    uint32_t link, last[2] = {XCO_NONE, XCO_NONE};
    FOR_PATH(s->nodes, host, destination, link) {
        last[link & 1] = link;
    }
    bool whole = last[UP] != XCO_NONE && last[DOWN] != XCO_NONE && !is_hosts(s, last[UP]) &&
                 !is_hosts(s, last[DOWN]);
    *up = whole ? last[UP] : XCO_NONE;
    *down = whole ? last[DOWN] : XCO_NONE;
}

static inline void path_occupy(struct xco_schedule *s, const struct flow *flow, uint64_t rate) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link)
    s->nodes[link >> 1].free[link & 1] -= rate;
}

static inline void path_release(struct xco_schedule *s, const struct flow *flow, uint64_t rate) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link)
    s->nodes[link >> 1].free[link & 1] += rate;
}

/* The rate of a flow when all links are free; 0: never, its host sends faster than the path. */
static inline uint64_t path_full_rate(const struct xco_schedule *s, uint32_t host,
                                      uint32_t destination) {
    uint64_t rate = s->nodes[host].capacity[UP];
    if (s->nodes[host].parent == XCO_NONE)
        rate = s->nodes[destination].capacity[DOWN];
    uint64_t bottleneck = rate;
    uint32_t link;
    FOR_PATH(s->nodes, host, destination, link) {
        uint64_t capacity = s->nodes[link >> 1].capacity[link & 1];
        bottleneck = capacity < bottleneck ? capacity : bottleneck;
    }
    return bottleneck == rate || s->limit_rates ? bottleneck : 0;
}

#endif
