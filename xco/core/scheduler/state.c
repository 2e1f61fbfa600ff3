/* The present state: grants, use and reservations; and the check of all invariants. */
#include "scheduler/paths.h"

struct xco_grant xco_schedule_current(const struct xco_schedule *s, uint32_t host) {
    if (host >= s->host_count)
        return (struct xco_grant){host, XCO_NONE, 0};
    const struct host *sender = &s->hosts[host];
    if (sender->sending == XCO_NONE)
        return (struct xco_grant){host, XCO_NONE, 0};
    return (struct xco_grant){host, s->flows[sender->sending].destination, sender->rate};
}

uint64_t xco_schedule_used_bps(const struct xco_schedule *s, uint32_t directed_link) {
    if (directed_link >= 2 * s->link_count)
        return 0;
    uint32_t link = s->directed[directed_link];
    return s->nodes[link >> 1].capacity[link & 1] - link_free(s, link);
}

uint64_t xco_schedule_reserved_bps(const struct xco_schedule *s, uint32_t directed_link) {
    if (directed_link >= 2 * s->link_count)
        return 0;
    uint32_t link = s->directed[directed_link];
    return s->nodes[link >> 1].held[link & 1];
}

uint32_t xco_schedule_reserved_for(const struct xco_schedule *s, uint32_t host) {
    if (host >= s->host_count || s->hosts[host].held_for == XCO_NONE)
        return XCO_NONE;
    return s->flows[s->hosts[host].held_for].destination;
}

uint64_t xco_schedule_full_rate_bps(const struct xco_schedule *s, uint32_t host,
                                    uint32_t destination) {
    if (host >= s->host_count || destination >= s->host_count || host == destination)
        return 0;
    return path_full_rate(s, host, destination);
}

uint32_t xco_schedule_backlog(const struct xco_schedule *s, uint32_t host) {
    if (host >= s->host_count)
        return 0;
    return s->hosts[host].backlog;
}

size_t xco_schedule_bytes(const struct xco_schedule *s) {
    size_t sources = (size_t)link_sources(s) + s->host_count;
    size_t node = sizeof *s->nodes + sizeof *s->siblings + sizeof *s->children +
                  sizeof *s->ordinal + 2 * sizeof *s->directed + 2 * sizeof *s->paired;
    size_t host = sizeof *s->hosts + 2 * sizeof *s->from + sizeof *s->ready + sizeof *s->room;
    return sizeof *s + s->node_count * node + s->host_count * host +
           (s->place_count + 1) * sizeof *s->parked +
           sources * (sizeof *s->sources + sizeof *s->source_at) +
           ((size_t)s->link_count + 1) * sizeof *s->class_rate +
           s->entry_room * sizeof(struct entry) + s->flow_room * sizeof *s->flows +
           (sizeof *s->table << s->table_bits);
}

/* Eq. 1: on every link, grants equal the capacity that is not free, and never exceed it. */
static const char *check_links(const struct xco_schedule *s) {
    for (uint32_t i = 0; i < 2 * s->link_count; i++) {
        uint32_t link = s->directed[i];
        const struct node *node = &s->nodes[link >> 1];
        uint64_t used = 0;
        if (node->free[link & 1] > node->capacity[link & 1])
            return "a link is used beyond its capacity";
        for (uint32_t x = 0; x < s->host_count; x++) {
            if (s->hosts[x].sending == XCO_NONE)
                continue;
            uint32_t crossed;
            FOR_PATH(s->nodes, x, s->flows[s->hosts[x].sending].destination, crossed) {
                used += crossed == link ? s->hosts[x].rate : 0;
            }
        }
        if (used != node->capacity[link & 1] - node->free[link & 1])
            return "the use of a link is not the sum of what is granted over it";
        if ((node->held[link & 1] != 0) != (node->owner[link & 1] != XCO_NONE))
            return "a link is held without a holder";
    }
    return NULL;
}

static const char *check_entries(const struct xco_schedule *s, uint32_t index) {
    const struct flow *flow = &s->flows[index];
    const struct backlog *from = &s->from[flow->host], *to = &s->to[flow->destination];
    if (flow->at_source >= from->count || from->entries[flow->at_source].flow != index ||
        flow->at_target >= to->count || to->entries[flow->at_target].flow != index)
        return "a backlogged flow is not among those of its hosts";
    if (flow->rank < from->entries[flow->at_source].rank ||
        flow->rank > to->entries[flow->at_target].rank)
        return flow->state == SENDING ? NULL : "a flow's rank is not what its hosts know";
    return NULL;
}

/* A flow that a host's link does not block must be parked at one that does, or no change reaches
 * it. */
static const char *check_waiting(const struct xco_schedule *s, const struct flow *flow) {
    uint64_t rate;
    if (!s->ready[flow->host])
        return NULL;
    if (path_blocked(s, flow, &rate) == XCO_NONE)
        return "a flow that fits is not granted";
    uint64_t least = least_rate(s, flow->full_rate);
    if (link_open(s, 2 * flow->destination + DOWN) < least)
        return NULL;
    if (!place_blocks(s, flow))
        return "a flow is not parked at a link that blocks it";
    return NULL;
}

static const char *check_flow(const struct xco_schedule *s, uint32_t index) {
    const struct flow *flow = &s->flows[index];
    const struct host *host = &s->hosts[flow->host];
    if (flow_find(s, flow->host, flow->destination) != index)
        return "a flow is not found in the table";
    if ((flow->state == SENDING) != (host->sending == index))
        return "a host does not send what was granted";
    if ((flow->state == RESERVED) != (host->held_for == index))
        return "a host is held for a flow that is not reserved";
    if (flow->drained && flow->state != SENDING)
        return "a drained flow is kept";
    if (s->room[flow->destination] !=
        (s->nodes[flow->destination].free[DOWN] >= least_rate(s, s->class_rate[0])))
        return "a host's link has room and has not, or the other way round";
    if (s->ready[flow->host] != (host->sending == XCO_NONE && host->held_for == XCO_NONE))
        return "a host is ready and is not, or the other way round";
    const char *wrong =
        flow->state == RESTING || flow->state == STUCK ? NULL : check_entries(s, index);
    return !wrong && flow->state == WAITING ? check_waiting(s, flow) : wrong;
}

static const char *check_flows(const struct xco_schedule *s) {
    uint32_t waiting = 0, aged = 0, backlog = 0, backlogs = 0;
    for (uint32_t i = 0; i < s->flow_room; i++) {
        const struct flow *flow = &s->flows[i];
        if (flow->state == UNUSED)
            continue;
        const char *wrong = check_flow(s, i);
        if (wrong)
            return wrong;
        waiting += flow->state == WAITING;
        backlog += flow->state != RESTING && !flow->drained;
    }
    for (uint32_t at = s->oldest; at != XCO_NONE && aged <= s->flow_room; at = s->flows[at].younger)
        aged++;
    for (uint32_t x = 0; x < s->host_count; x++)
        backlogs += s->hosts[x].backlog;
    if (aged != waiting)
        return "the order of waiting is not of those that wait";
    return backlog == backlogs ? NULL : "a host's backlog is miscounted";
}

const char *xco_schedule_check(const struct xco_schedule *s) {
    const char *wrong = check_links(s);
    return wrong ? wrong : check_flows(s);
}
