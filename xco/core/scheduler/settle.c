/* New grants after something became free: tries the flows waiting there until it is full. */
#include "scheduler/paths.h"

/* Try first the flow for which a freed link or host is reserved. */
static void try_owner(struct xco_schedule *s, uint32_t what) {
    uint32_t flow = what < link_sources(s) ? s->nodes[what >> 1].owner[what & 1]
                                           : s->hosts[what - link_sources(s)].held_for;
    if (flow == XCO_NONE)
        return;
    const struct flow *owner = &s->flows[flow];
    uint64_t rate;
    if (s->hosts[owner->host].sending == XCO_NONE) {
        if (owner_fits(s, owner))
            grant(s, flow, owner->full_rate);
    } else if (can_preempt(s, flow, &rate)) {
        preempt(s, flow, rate);
    }
}

/* Whether a flow may be granted now, and how much. If not, it stays where a change is noticed:
 * parked at a link between switches that blocks it, or in its hosts' backlogs. */
static inline bool fits(struct xco_schedule *s, uint32_t flow, uint64_t *rate) {
    const struct flow *tried = &s->flows[flow];
    if (tried->state != WAITING)
        return false;
    if (!s->ready[tried->host]) {
        bool can = can_preempt(s, flow, rate);
        if (!can)
            flow_unpark(s, flow);
        return can;
    }
    if (place_blocks(s, tried))
        return false;
    uint32_t link = path_blocked(s, tried, rate);
    if (link != XCO_NONE)
        flow_park(s, flow, link);
    return link == XCO_NONE;
}

static bool better(const struct xco_schedule *s, uint32_t flow, uint32_t first) {
    return first == XCO_NONE || flow_before(s, flow, first);
}

/* The first in rank of a place and of one found before; flows that do not fit are parked
 * elsewhere. */
static uint32_t first_in(struct xco_schedule *s, uint32_t place, uint32_t first) {
    const uint32_t *root = &s->parked[place];
    uint64_t rate;
    while (*root != XCO_NONE && better(s, *root, first))
        if (fits(s, *root, &rate))
            return *root;
    return first;
}

/* The same for flows parked by a link and one of its siblings in the other direction. */
static uint32_t first_in_pairs(struct xco_schedule *s, uint32_t link, uint32_t class,
                               uint32_t first) {
    const struct siblings *all = &s->siblings[s->nodes[link >> 1].parent];
    uint64_t least = least_rate(s, s->class_rate[class]);
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t other = 2 * s->children[all->first + i] + (link % 2 == UP ? DOWN : UP);
        uint32_t up = link % 2 == UP ? link : other, down = link % 2 == UP ? other : link;
        uint32_t place = place_of_pair(s, up, down, class);
        if (s->parked[place] != XCO_NONE && link_open(s, other) >= least)
            first = first_in(s, place, first);
    }
    return first;
}

/* The first in rank of those parked at a link between switches that fit. */
static uint32_t first_parked(struct xco_schedule *s, uint32_t link) {
    uint64_t open = link_open(s, link);
    uint32_t first = XCO_NONE;
    for (uint32_t class = 0; class < s->classes; class++) {
        if (least_rate(s, s->class_rate[class]) > open)
            break;
        first = first_in(s, place_of_link(s, link, class), first);
        if (s->paired[link])
            first = first_in_pairs(s, link, class, first);
    }
    return first;
}

/* Take from up to 64 entries, a bit each, the first in rank of those that fit. */
static uint32_t first_of(struct xco_schedule *s, const struct entry *entries, uint64_t maybe,
                         uint32_t first) {
    uint64_t rate;
    for (; maybe; maybe &= maybe - 1) {
        const struct entry *entry = &entries[__builtin_ctzll(maybe)];
        if (first != XCO_NONE && entry->rank > s->flows[first].rank)
            continue;
        if (better(s, entry->flow, first) && fits(s, entry->flow, &rate))
            first = entry->flow;
    }
    return first;
}

/* The first in rank of a ready host's flows that fit, selected without branches. */
static uint32_t first_from(struct xco_schedule *s, uint32_t host) {
    const struct backlog *from = &s->from[host];
    uint32_t first = XCO_NONE, end = s->ready[host] ? from->count : 0;
    for (uint32_t at = 0; at < end; at += 64) {
        const struct entry *entries = &from->entries[at];
        uint32_t count = end - at < 64 ? end - at : 64;
        uint64_t maybe = 0;
        for (uint32_t i = 0; i < count; i++)
            maybe = maybe >> 1 | (uint64_t)s->room[entries[i].peer] << 63;
        first = first_of(s, entries, maybe >> (64 - count), first);
    }
    return first;
}

/* The first in rank of the flows to a host that fit. */
static uint32_t first_to(struct xco_schedule *s, uint32_t host) {
    const struct backlog *to = &s->to[host];
    bool open = link_open(s, 2 * host + DOWN) >= least_rate(s, s->class_rate[0]);
    bool preempts = !s->fair && s->threshold_ns != XCO_FOREVER;
    uint32_t first = XCO_NONE, end = open ? to->count : 0;
    for (uint32_t at = 0; at < end; at += 64) {
        const struct entry *entries = &to->entries[at];
        uint32_t count = end - at < 64 ? end - at : 64;
        uint64_t maybe = 0;
        for (uint32_t i = 0; i < count; i++)
            maybe = maybe >> 1 | (uint64_t)(s->ready[entries[i].peer] | preempts) << 63;
        first = first_of(s, entries, maybe >> (64 - count), first);
    }
    return first;
}

static uint32_t first_at(struct xco_schedule *s, uint32_t what) {
    if (what >= link_sources(s))
        return first_from(s, what - link_sources(s));
    if (!is_hosts(s, what))
        return first_parked(s, what);
    return what % 2 == DOWN ? first_to(s, what / 2) : XCO_NONE;
}

/* Return the first in rank of all flows that wait at the freed link or host and fit. */
static uint32_t next_candidate(struct xco_schedule *s) {
    uint32_t first = XCO_NONE;
    uint64_t rate;
    for (uint32_t i = 0; i < s->source_count; i++) {
        struct source *source = &s->sources[i];
        if (source->done)
            continue;
        if (source->best == XCO_NONE || !fits(s, source->best, &rate))
            source->best = first_at(s, source->what);
        source->done = source->best == XCO_NONE;
        if (!source->done && better(s, source->best, first))
            first = source->best;
    }
    return first;
}

/* Reserve links and host for the flow that has waited longest, while patience is over and none
 * is reserved already. A flow that cannot reserve yet is next: none overtakes it. */
static void reserve_oldest(struct xco_schedule *s) {
    while (s->oldest != XCO_NONE) {
        uint32_t flow = s->oldest;
        struct flow *old = &s->flows[flow];
        if (s->patience_ns == XCO_FOREVER || s->now_ns - old->since_ns <= s->patience_ns ||
            s->hosts[old->host].held_for != XCO_NONE)
            return;
        uint32_t link;
        FOR_PATH(s->nodes, old->host, old->destination, link) {
            if (s->nodes[link >> 1].owner[link & 1] != XCO_NONE)
                return;
        }
        flow_unpark(s, flow);
        age_remove(s, flow);
        old->state = RESERVED;
        hold(s, flow);
    }
}

static void try_owners(struct xco_schedule *s) {
    while (s->owners_tried < s->source_count)
        try_owner(s, s->sources[s->owners_tried++].what);
}

/* Grant until no waiting flow fits: Algorithm 1's main loop, less the flows that it cannot
 * affect. */
void settle(struct xco_schedule *s) {
    uint64_t rate = 0;
    try_owners(s);
    for (uint32_t flow; (flow = next_candidate(s)) != XCO_NONE; try_owners(s)) {
        bool ready = s->ready[s->flows[flow].host];
        if (ready && path_blocked(s, &s->flows[flow], &rate) == XCO_NONE)
            grant(s, flow, rate);
        else if (!ready && can_preempt(s, flow, &rate))
            preempt(s, flow, rate);
    }
    for (uint32_t i = 0; i < s->source_count; i++)
        s->source_at[s->sources[i].what] = 0;
    s->source_count = s->owners_tried = 0;
    reserve_oldest(s);
}
