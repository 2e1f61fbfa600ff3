/* A new schedule: checks options, roots the tree, creates tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/internal.h"

static const uint64_t MOST_BPS = (uint64_t)1 << 62;

static const char *wrong_link(const struct xco_schedule_options *o, uint32_t i) {
    const struct xco_tree_link *link = &o->links[i];
    uint32_t nodes = o->hosts + o->switches;
    if (link->a >= nodes || link->b >= nodes || link->a == link->b)
        return "links: an end that is no node, or both ends the same";
    if (link->capacity_bps == 0 || link->capacity_bps >= MOST_BPS)
        return "links: a capacity must be above 0 and below 2^62 bits/s";
    return NULL;
}

static const char *wrong_options(const struct xco_schedule_options *o) {
    if (o->hosts == 0 || o->hosts > XCO_MOST_HOSTS || o->switches > XCO_MOST_HOSTS)
        return "hosts, switches: 1 to 1,000,000 hosts, at most as many switches";
    if (o->policy > XCO_FAIR)
        return "policy: not one that is known";
    if (o->policy == XCO_FAIR && o->memory_ns == 0)
        return "policy: fair needs a memory above 0";
    if (!(o->least_share > 0.0 && o->least_share <= 1.0))
        return "least_share: must be above 0 and at most 1";
    if (o->hosts + o->switches > 1 && !o->links)
        return "links: missing";
    for (uint32_t i = 0; i + 1 < o->hosts + o->switches; i++) {
        const char *wrong = wrong_link(o, i);
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* The links of each node, as a list: `first` by node, `next` by directed link (2*i: at a). */
struct adjacency {
    uint32_t *first;
    uint32_t *next;
    uint32_t *order; /* nodes in the order of their distance from the root */
};

static void adjacency_free(struct adjacency *adjacency) {
    free(adjacency->first);
    free(adjacency->next);
    free(adjacency->order);
}

static int adjacency_make(struct adjacency *adjacency, const struct xco_schedule_options *o) {
    uint32_t nodes = o->hosts + o->switches;
    adjacency->first = malloc(nodes * sizeof *adjacency->first);
    adjacency->next = malloc(2 * (size_t)nodes * sizeof *adjacency->next);
    adjacency->order = malloc(nodes * sizeof *adjacency->order);
    if (!adjacency->first || !adjacency->next || !adjacency->order)
        return -ENOMEM;
    memset(adjacency->first, 0xff, nodes * sizeof *adjacency->first);
    for (uint32_t i = 0; i + 1 < nodes; i++) {
        uint32_t ends[2] = {o->links[i].a, o->links[i].b};
        for (uint32_t side = 0; side < 2; side++) {
            adjacency->next[2 * i + side] = adjacency->first[ends[side]];
            adjacency->first[ends[side]] = 2 * i + side;
        }
    }
    return 0;
}

static struct node child_of(uint32_t parent, uint32_t depth, uint64_t capacity) {
    return (struct node){
        .parent = parent,
        .depth = depth,
        .capacity = {capacity, capacity},
        .free = {capacity, capacity},
        .owner = {XCO_NONE, XCO_NONE},
    };
}

/* Hang the tree from a root, breadth first; return the number of nodes reached. */
static uint32_t reach(struct xco_schedule *s, const struct xco_schedule_options *o,
                      const struct adjacency *adjacency, uint32_t root) {
    uint32_t reached = 0;
    for (uint32_t i = 0; i < s->node_count; i++)
        s->nodes[i].depth = XCO_NONE;
    s->nodes[root] = child_of(XCO_NONE, 0, 0);
    s->nodes[root].free[DOWN] = UINT64_MAX; /* no link: it blocks nothing */
    adjacency->order[reached++] = root;
    for (uint32_t done = 0; done < reached; done++) {
        uint32_t at = adjacency->order[done];
        for (uint32_t e = adjacency->first[at]; e != XCO_NONE; e = adjacency->next[e]) {
            const struct xco_tree_link *link = &o->links[e / 2];
            uint32_t to = e & 1 ? link->a : link->b;
            if (s->nodes[to].depth != XCO_NONE)
                continue;
            s->nodes[to] = child_of(at, s->nodes[at].depth + 1, link->capacity_bps);
            s->directed[e] = 2 * to + DOWN;
            s->directed[e ^ 1] = 2 * to + UP;
            adjacency->order[reached++] = to;
        }
    }
    return reached;
}

static bool hosts_are_leaves(const struct xco_schedule_options *o,
                             const struct adjacency *adjacency) {
    for (uint32_t x = 0; x < o->hosts; x++)
        if (adjacency->first[x] != XCO_NONE && adjacency->next[adjacency->first[x]] != XCO_NONE)
            return false;
    return true;
}

/* Root the tree at its middle: halfway along a longest path, where walks are shortest. */
static int root_tree(struct xco_schedule *s, const struct xco_schedule_options *o,
                     const char **problem) {
    struct adjacency adjacency = {0};
    int result = adjacency_make(&adjacency, o);
    if (result == 0 && (reach(s, o, &adjacency, o->hosts + o->switches - 1) != s->node_count ||
                        !hosts_are_leaves(o, &adjacency))) {
        *problem = "links: they make no tree of all nodes with hosts as its leaves";
        result = -EINVAL;
    }
    if (result == 0) {
        reach(s, o, &adjacency, adjacency.order[s->node_count - 1]);
        uint32_t middle = adjacency.order[s->node_count - 1];
        for (uint32_t depth = s->nodes[middle].depth / 2; depth > 0; depth--)
            middle = s->nodes[middle].parent;
        reach(s, o, &adjacency, middle);
    }
    adjacency_free(&adjacency);
    return result;
}

static int make_tables(struct xco_schedule *s) {
    size_t sources = (size_t)link_sources(s) + s->host_count;
    s->hosts = calloc(s->host_count, sizeof *s->hosts);
    s->parked = malloc((s->place_count + 1) * sizeof *s->parked);
    s->from = calloc(s->host_count, sizeof *s->from);
    s->to = calloc(s->host_count, sizeof *s->to);
    s->ready = malloc(s->host_count * sizeof *s->ready);
    s->room = malloc(s->host_count * sizeof *s->room);
    s->sources = malloc(sources * sizeof *s->sources);
    s->source_at = calloc(sources, sizeof *s->source_at);
    if (!s->hosts || !s->parked || !s->from || !s->to || !s->ready || !s->room || !s->sources ||
        !s->source_at)
        return -ENOMEM;
    memset(s->parked, 0xff, (s->place_count + 1) * sizeof *s->parked);
    for (uint32_t x = 0; x < s->host_count; x++) {
        s->hosts[x].sending = s->hosts[x].held_for = s->hosts[x].flows = XCO_NONE;
        s->hosts[x].weight = 1.0;
        s->ready[x] = s->room[x] = true;
        backlog_init(&s->from[x]);
        backlog_init(&s->to[x]);
    }
    return flows_room(s, 1);
}

static struct xco_schedule *from_options(const struct xco_schedule_options *o) {
    struct xco_schedule *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->host_count = o->hosts;
    s->node_count = o->hosts + o->switches;
    s->link_count = s->node_count - 1;
    s->fair = o->policy == XCO_FAIR;
    s->limit_rates = o->limit_rates != 0;
    s->threshold_ns = o->threshold_ns;
    s->patience_ns = o->patience_ns;
    s->memory_ns = o->memory_ns ? (double)o->memory_ns : 1.0;
    s->least_share = o->least_share;
    shares_init(&s->shares, s->memory_ns);
    s->oldest = s->youngest = s->flow_free = XCO_NONE;
    s->resting = (struct queue){XCO_NONE, XCO_NONE};
    s->nodes = calloc(s->node_count, sizeof *s->nodes);
    s->directed = calloc(2 * (size_t)s->node_count, sizeof *s->directed);
    return s;
}

struct xco_schedule *xco_schedule_new(const struct xco_schedule_options *options,
                                      const char **problem) {
    const char *wrong = wrong_options(options);
    int result = wrong ? -EINVAL : -ENOMEM;
    struct xco_schedule *s = wrong ? NULL : from_options(options);
    if (s && s->nodes && s->directed)
        result = root_tree(s, options, &wrong);
    if (result == 0)
        result = classes_make(s, options);
    if (result == 0)
        result = siblings_make(s);
    if (result == 0)
        result = make_tables(s);
    if (result == 0)
        return s;
    xco_schedule_free(s);
    if (problem)
        *problem = wrong ? wrong : "memory: not enough";
    errno = -result;
    return NULL;
}

void xco_schedule_free(struct xco_schedule *s) {
    if (!s)
        return;
    free(s->nodes);
    free(s->directed);
    free(s->hosts);
    for (uint32_t x = 0; s->from && s->to && x < s->host_count; x++) {
        backlog_free(&s->from[x]);
        backlog_free(&s->to[x]);
    }
    free(s->from);
    free(s->to);
    free(s->ready);
    free(s->room);
    free(s->class_rate);
    free(s->parked);
    free(s->siblings);
    free(s->paired);
    free(s->children);
    free(s->ordinal);
    free(s->sources);
    free(s->source_at);
    free(s->flows);
    free(s->table);
    free(s);
}
