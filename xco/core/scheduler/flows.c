/* The table of V2V flows: a growing pool, indexed by host and destination, with a ring per host. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/paths.h"

enum { FIRST_ROOM = 64, MOST_RESTING = 16 /* a host, on average */ };
/* XCO_FAIR: after so many halvings, a resting flow's service counts for nothing. */
static const double FORGOTTEN = 8.0;

static uint32_t place_of(const struct xco_schedule *s, uint32_t host, uint32_t destination) {
    uint64_t key = ((uint64_t)host << 32 | destination) * 0x9e3779b97f4a7c15u;
    return (uint32_t)((key ^ key >> 29) * 0xbf58476d1ce4e5b9u >> (64 - s->table_bits));
}

static uint32_t table_next(const struct xco_schedule *s, uint32_t place) {
    return (place + 1) & ((1u << s->table_bits) - 1);
}

static void table_put(struct xco_schedule *s, uint32_t flow) {
    uint32_t place = place_of(s, s->flows[flow].host, s->flows[flow].destination);
    while (s->table[place] != XCO_NONE)
        place = table_next(s, place);
    s->table[place] = flow;
}

static uint32_t table_place(const struct xco_schedule *s, uint32_t host, uint32_t destination) {
    uint32_t place = place_of(s, host, destination);
    for (; s->table[place] != XCO_NONE; place = table_next(s, place)) {
        const struct flow *flow = &s->flows[s->table[place]];
        if (flow->host == host && flow->destination == destination)
            break;
    }
    return place;
}

/* Empty a slot, and close the gap: entries that probed past it move up. */
static void table_remove(struct xco_schedule *s, uint32_t gap) {
    uint32_t mask = (1u << s->table_bits) - 1;
    for (uint32_t at = table_next(s, gap); s->table[at] != XCO_NONE; at = table_next(s, at)) {
        const struct flow *flow = &s->flows[s->table[at]];
        uint32_t home = place_of(s, flow->host, flow->destination);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            s->table[gap] = s->table[at];
            gap = at;
        }
    }
    s->table[gap] = XCO_NONE;
}

static void pool_extend(struct xco_schedule *s, struct flow *flows, uint32_t room) {
    if (s->flow_room)
        memcpy(flows, s->flows, s->flow_room * sizeof *flows);
    free(s->flows);
    s->flows = flows;
    for (uint32_t i = room; i-- > s->flow_room;) {
        s->flows[i] = (struct flow){.state = UNUSED, .next = s->flow_free};
        s->flow_free = i;
    }
    s->flow_room = room;
}

static void table_replace(struct xco_schedule *s, uint32_t *table, uint32_t bits) {
    free(s->table);
    s->table = table;
    s->table_bits = bits;
    memset(table, 0xff, sizeof *table << bits);
    for (uint32_t i = 0; i < s->flow_room; i++)
        if (s->flows[i].state != UNUSED)
            table_put(s, i);
}

int flows_room(struct xco_schedule *s, size_t more) {
    size_t wanted = s->flow_count + more, room = s->flow_room ? s->flow_room : FIRST_ROOM;
    uint32_t bits = 1;
    if (wanted <= s->flow_room)
        return 0;
    while (room < wanted)
        room *= 2;
    if (room > (size_t)1 << 30)
        return -ENOMEM;
    while ((size_t)1 << bits < 2 * room)
        bits++;
    uint32_t *table = malloc(sizeof *table << bits);
    struct flow *flows = table ? aligned_alloc(64, room * sizeof *flows) : NULL;
    if (!flows) {
        free(table);
        return -ENOMEM;
    }
    pool_extend(s, flows, (uint32_t)room);
    table_replace(s, table, bits);
    return 0;
}

uint32_t flow_find(const struct xco_schedule *s, uint32_t host, uint32_t destination) {
    return s->flow_count ? s->table[table_place(s, host, destination)] : XCO_NONE;
}

static void ring_add(struct xco_schedule *s, uint32_t flow) {
    struct host *host = &s->hosts[s->flows[flow].host];
    struct flow *new = &s->flows[flow];
    if (host->flows == XCO_NONE) {
        host->flows = new->after = new->before = flow;
        return;
    }
    new->after = host->flows;
    new->before = s->flows[host->flows].before;
    s->flows[new->before].after = flow;
    s->flows[new->after].before = flow;
}

static void ring_remove(struct xco_schedule *s, uint32_t flow) {
    const struct flow *old = &s->flows[flow];
    struct host *host = &s->hosts[old->host];
    s->flows[old->before].after = old->after;
    s->flows[old->after].before = old->before;
    if (host->flows == flow)
        host->flows = old->after == flow ? XCO_NONE : old->after;
}

void ring_last(struct xco_schedule *s, uint32_t flow) {
    ring_remove(s, flow);
    ring_add(s, flow);
}

/* Forget the flow that has rested longest, if its service no longer counts, or if too many rest. */
static void forget_old(struct xco_schedule *s) {
    uint32_t flow = s->resting.head;
    if (flow == XCO_NONE)
        return;
    double rested = (double)(s->now_ns - s->flows[flow].since_ns);
    if (rested > FORGOTTEN * s->memory_ns || s->rest_count > MOST_RESTING * s->host_count)
        flow_forget(s, flow);
}

/* The index of a full rate among those that flows can have; any for a stuck flow. */
static uint32_t class_of(const struct xco_schedule *s, uint64_t full_rate) {
    uint32_t class = 0;
    while (class + 1 < s->classes && s->class_rate[class] < full_rate)
        class++;
    return class;
}

/* Return a new, resting flow. There is room: flows_room was called. */
uint32_t flow_make(struct xco_schedule *s, uint32_t host, uint32_t destination) {
    forget_old(s);
    forget_old(s);
    uint32_t made = s->flow_free;
    struct flow *flow = &s->flows[made];
    s->flow_free = flow->next;
    s->flow_count++;
    uint64_t full_rate = path_full_rate(s, host, destination);
    *flow = (struct flow){.host = host, .destination = destination, .place = XCO_NONE};
    flow->next = flow->previous = flow->child = flow->older = flow->younger = XCO_NONE;
    flow->rate_class = class_of(s, full_rate);
    flow->full_rate = full_rate;
    path_top(s, host, destination, &flow->up, &flow->down);
    flow->weight = s->hosts[host].weight;
    flow->rank = -INFINITY;
    flow->state = RESTING;
    ring_add(s, made);
    table_put(s, made);
    return made;
}

/* Remove a resting flow from everywhere. */
void flow_forget(struct xco_schedule *s, uint32_t flow) {
    if (s->flows[flow].place == AT_REST)
        rest_remove(s, flow);
    table_remove(s, table_place(s, s->flows[flow].host, s->flows[flow].destination));
    ring_remove(s, flow);
    s->flows[flow].state = UNUSED;
    s->flows[flow].next = s->flow_free;
    s->flow_free = flow;
    s->flow_count--;
}
