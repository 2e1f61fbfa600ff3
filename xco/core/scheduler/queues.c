/* Where flows are parked: heaps by rank; and lists of waiting and resting ones, by age. */
#include "scheduler/paths.h"

static void list_push(struct xco_schedule *s, struct queue *queue, uint32_t flow) {
    struct flow *new = &s->flows[flow];
    new->next = XCO_NONE;
    new->previous = queue->tail;
    if (queue->tail == XCO_NONE)
        queue->head = flow;
    else
        s->flows[queue->tail].next = flow;
    queue->tail = flow;
}

static void list_remove(struct xco_schedule *s, struct queue *queue, uint32_t flow) {
    const struct flow *old = &s->flows[flow];
    if (old->previous == XCO_NONE)
        queue->head = old->next;
    else
        s->flows[old->previous].next = old->next;
    if (old->next == XCO_NONE)
        queue->tail = old->previous;
    else
        s->flows[old->next].previous = old->previous;
}

/* A pairing heap (Fredman et al., 1986): melding is O(1), removal O(log n) amortised. A child's
 * `previous` is its elder sibling, or its parent if it is the first. */
static uint32_t meld(struct xco_schedule *s, uint32_t a, uint32_t b) {
    if (a == XCO_NONE || b == XCO_NONE)
        return a == XCO_NONE ? b : a;
    uint32_t top = flow_before(s, b, a) ? b : a, below = top == a ? b : a;
    struct flow *parent = &s->flows[top], *child = &s->flows[below];
    child->previous = top;
    child->next = parent->child;
    if (parent->child != XCO_NONE)
        s->flows[parent->child].previous = below;
    parent->child = below;
    parent->next = parent->previous = XCO_NONE;
    return top;
}

/* Meld siblings into one heap: in pairs from the first on, then those from the last back. */
static uint32_t meld_all(struct xco_schedule *s, uint32_t first) {
    uint32_t pairs = XCO_NONE;
    while (first != XCO_NONE) {
        uint32_t second = s->flows[first].next;
        uint32_t rest = second == XCO_NONE ? XCO_NONE : s->flows[second].next;
        uint32_t pair = meld(s, first, second);
        s->flows[pair].next = pairs;
        pairs = pair;
        first = rest;
    }
    uint32_t root = XCO_NONE;
    while (pairs != XCO_NONE) {
        uint32_t next = s->flows[pairs].next;
        root = meld(s, root, pairs);
        pairs = next;
    }
    if (root != XCO_NONE)
        s->flows[root].next = s->flows[root].previous = XCO_NONE;
    return root;
}

void heap_leave(struct xco_schedule *s, uint32_t flow) {
    struct flow *old = &s->flows[flow];
    uint32_t *root = &s->parked[old->place];
    uint32_t below = meld_all(s, old->child);
    if (old->place >= first_pair(s))
        s->paired[old->up]--, s->paired[old->down]--;
    old->place = XCO_NONE;
    if (*root == flow) {
        *root = below;
        return;
    }
    struct flow *before = &s->flows[old->previous];
    if (before->child == flow)
        before->child = old->next;
    else
        before->next = old->next;
    if (old->next != XCO_NONE)
        s->flows[old->next].previous = old->previous;
    *root = meld(s, *root, below);
}

static uint32_t place_of(const struct xco_schedule *s, const struct flow *flow, uint32_t link) {
    if (link == flow->up || link == flow->down)
        return place_of_pair(s, flow->up, flow->down, flow->rate_class);
    return place_of_link(s, link, flow->rate_class);
}

/* Park a flow at a link that blocks it. At a host's link its backlog entry suffices. */
void flow_park(struct xco_schedule *s, uint32_t flow, uint32_t link) {
    struct flow *new = &s->flows[flow];
    flow_unpark(s, flow);
    if (is_hosts(s, link))
        return;
    new->place = place_of(s, new, link);
    if (new->place >= first_pair(s))
        s->paired[new->up]++, s->paired[new->down]++;
    new->child = new->next = new->previous = XCO_NONE;
    s->parked[new->place] = meld(s, s->parked[new->place], flow);
}

/* Whether the links at which a flow is parked still block it. */
bool place_blocks(const struct xco_schedule *s, const struct flow *flow) {
    uint64_t least = least_rate(s, flow->full_rate);
    if (flow->place == XCO_NONE)
        return false;
    if (flow->place >= first_pair(s))
        return link_open(s, flow->up) < least || link_open(s, flow->down) < least;
    return link_open(s, flow->place / s->classes + 2 * s->host_count) < least;
}

/* Add a flow that begins to wait at the end of the order of waiting. */
void age_push(struct xco_schedule *s, uint32_t flow) {
    struct flow *new = &s->flows[flow];
    new->older = s->youngest;
    new->younger = XCO_NONE;
    if (s->youngest == XCO_NONE)
        s->oldest = flow;
    else
        s->flows[s->youngest].younger = flow;
    s->youngest = flow;
}

void age_remove(struct xco_schedule *s, uint32_t flow) {
    const struct flow *old = &s->flows[flow];
    if (old->older == XCO_NONE)
        s->oldest = old->younger;
    else
        s->flows[old->older].younger = old->younger;
    if (old->younger == XCO_NONE)
        s->youngest = old->older;
    else
        s->flows[old->younger].older = old->older;
}

void rest_push(struct xco_schedule *s, uint32_t flow) {
    s->flows[flow].place = AT_REST;
    list_push(s, &s->resting, flow);
    s->rest_count++;
}

void rest_remove(struct xco_schedule *s, uint32_t flow) {
    list_remove(s, &s->resting, flow);
    s->rest_count--;
    s->flows[flow].place = XCO_NONE;
}
