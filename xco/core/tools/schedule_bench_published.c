/* Algorithm 1 as published, in C, for the benchmark: whole contention groups at every event.
 *
 * It gets every advantage: contention groups are rows of bits; the feasibility condition is kept
 * as the capacity left on each link; and active nodes are never preempted (lines 15 and 44 with
 * a threshold of a slice), which spares it most of its work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/schedule_bench_parts.h"
#include "scheduler/paths.h"

struct group { /* B_x */
    uint32_t *destinations;
    uint32_t count, room;
};

struct published {
    struct xco_schedule *tree; /* for its nodes alone */
    uint32_t words;
    uint64_t *contention; /* beta_ij: a row of bits for each directed link */
    uint64_t *affected;   /* A */
    uint64_t *scheduled;  /* N */
    struct group *groups;
    uint32_t *current; /* D_x */
};

static uint64_t *beta(const struct published *p, uint32_t link) {
    return p->contention + (size_t)link * p->words;
}

static void set_bit(uint64_t *row, uint32_t bit) {
    row[bit / 64] |= (uint64_t)1 << bit % 64;
}

static void clear_bit(uint64_t *row, uint32_t bit) {
    row[bit / 64] &= ~((uint64_t)1 << bit % 64);
}

static struct flow flow_of(const struct published *p, uint32_t host, uint32_t destination) {
    return (struct flow){
        .host = host, .destination = destination, .full_rate = p->tree->nodes[host].capacity[UP]};
}

static void join_groups(struct published *p, uint32_t host, uint32_t destination) {
    uint32_t link;
    FOR_PATH(p->tree->nodes, host, destination, link)
    set_bit(beta(p, link), host);
}

/* Line 23. Links that other backlog of the host crosses keep it in their contention group. */
static void remove_backlog(struct published *p, uint32_t host, uint32_t destination) {
    struct group *group = &p->groups[host];
    uint32_t link;
    for (uint32_t i = 0; i < group->count; i++)
        if (group->destinations[i] == destination)
            group->destinations[i--] = group->destinations[--group->count];
    FOR_PATH(p->tree->nodes, host, destination, link)
    clear_bit(beta(p, link), host);
    for (uint32_t i = 0; i < group->count; i++)
        join_groups(p, host, group->destinations[i]);
}

/* Lines 13 to 17 and 44, for one path: A joins beta_ij, less N. */
static void affect_path(struct published *p, uint32_t host, uint32_t destination) {
    uint32_t link;
    FOR_PATH(p->tree->nodes, host, destination, link) {
        const uint64_t *row = beta(p, link);
        for (uint32_t w = 0; w < p->words; w++)
            p->affected[w] |= row[w] & ~p->scheduled[w];
    }
}

/* Line 28: some node in A; the traversal goes round from the one after the event's. */
static uint32_t some_node(const struct published *p, uint32_t from) {
    uint32_t start = from / 64;
    uint64_t first = p->affected[start] & UINT64_MAX << from % 64;
    if (first)
        return 64 * start + (uint32_t)__builtin_ctzll(first);
    for (uint32_t i = 1, w; i <= p->words; i++) {
        w = (start + i) % p->words;
        if (p->affected[w])
            return 64 * w + (uint32_t)__builtin_ctzll(p->affected[w]);
    }
    return XCO_NONE;
}

/* Lines 29 to 51 for an idle node. The order of its destinations rotates. */
static bool schedule_node(struct published *p, uint32_t host) {
    struct group *group = &p->groups[host];
    uint64_t rate;
    for (uint32_t i = 0; i < group->count; i++) {
        struct flow flow = flow_of(p, host, group->destinations[i]);
        if (path_blocked(p->tree, &flow, &rate) != XCO_NONE)
            continue;
        path_occupy(p->tree, &flow, flow.full_rate);
        p->current[host] = flow.destination;
        memmove(&group->destinations[i], &group->destinations[i + 1],
                (group->count - i - 1) * sizeof *group->destinations);
        group->destinations[group->count - 1] = flow.destination;
        return true;
    }
    return false;
}

/* Lines 27 to 61. */
static int main_loop(struct published *p, uint32_t trigger, struct xco_grant *grants) {
    int count = 0;
    uint32_t hosts = p->tree->host_count, from = (trigger + 1) % hosts, x;
    while ((x = some_node(p, from)) != XCO_NONE) {
        clear_bit(p->affected, x);
        from = (x + 1) % hosts;
        if (p->current[x] != XCO_NONE || !schedule_node(p, x))
            continue;
        set_bit(p->scheduled, x);
        grants[count++] = (struct xco_grant){x, p->current[x], p->tree->nodes[x].capacity[UP]};
    }
    memset(p->scheduled, 0, p->words * sizeof *p->scheduled);
    return count;
}

static int event(struct published *p, uint32_t trigger, bool gave_up, struct xco_grant *grants) {
    uint32_t old = p->current[trigger];
    for (uint32_t i = 0; i < p->groups[trigger].count; i++)
        affect_path(p, trigger, p->groups[trigger].destinations[i]);
    if (old != XCO_NONE) {
        struct flow flow = flow_of(p, trigger, old);
        path_release(p->tree, &flow, flow.full_rate);
        p->current[trigger] = XCO_NONE;
        if (gave_up)
            remove_backlog(p, trigger, old);
    }
    return main_loop(p, trigger, grants);
}

static int add(void *state, uint64_t now_ns, uint32_t host, uint32_t destination,
               struct xco_grant *grants) {
    struct published *p = state;
    struct group *group = &p->groups[host];
    (void)now_ns;
    if (group->count == group->room) {
        uint32_t room = group->room ? 2 * group->room : 8;
        uint32_t *more = realloc(group->destinations, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        group->destinations = more;
        group->room = room;
    }
    group->destinations[group->count++] = destination;
    join_groups(p, host, destination);
    if (p->current[host] != XCO_NONE)
        return 0; /* event 3 is of nodes without a backlog; this one is busy */
    return event(p, host, false, grants);
}

static int expired(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants) {
    (void)now_ns;
    return event(state, host, false, grants);
}

static int gave_up(void *state, uint64_t now_ns, uint32_t host, struct xco_grant *grants) {
    (void)now_ns;
    return event(state, host, true, grants);
}

struct contestant published_contestant(struct published *published) {
    return (struct contestant){published, add, expired, gave_up};
}

struct published *published_new(const struct network *network) {
    struct xco_schedule_options options = {.hosts = network->hosts,
                                           .switches = network->switches,
                                           .links = network->links,
                                           .least_share = 1.0};
    struct published *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->tree = xco_schedule_new(&options, NULL);
    p->words = (network->hosts + 63) / 64;
    size_t links = 2 * ((size_t)network->hosts + network->switches);
    p->contention = calloc(links * p->words, sizeof *p->contention);
    p->affected = calloc(p->words, sizeof *p->affected);
    p->scheduled = calloc(p->words, sizeof *p->scheduled);
    p->groups = calloc(network->hosts, sizeof *p->groups);
    p->current = malloc(network->hosts * sizeof *p->current);
    if (!p->tree || !p->contention || !p->affected || !p->scheduled || !p->groups || !p->current) {
        published_free(p);
        return NULL;
    }
    memset(p->current, 0xff, network->hosts * sizeof *p->current);
    return p;
}

void published_free(struct published *p) {
    if (!p)
        return;
    for (uint32_t x = 0; p->groups && p->tree && x < p->tree->host_count; x++)
        free(p->groups[x].destinations);
    xco_schedule_free(p->tree);
    free(p->contention);
    free(p->affected);
    free(p->scheduled);
    free(p->groups);
    free(p->current);
    free(p);
}
