/* Who is granted what after something got free: what waits there is tried until it is full. */
#include <math.h>

#include "schedule_paths.h"

/* Note that a link or host got free: what waits there is tried before the event is over. */
void source_open(struct xco_schedule *s, uint32_t source) {
    if (s->is_source[source])
        return;
    s->is_source[source] = true;
    s->sources[s->source_count++] = source;
}

static void open_path(struct xco_schedule *s, const struct flow *flow) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link)
        source_open(s, link);
}

/* What was found too large for what is left at its link waits there again, at its old place. */
static void put_back(struct xco_schedule *s) {
    while (s->returned != XCO_NONE) {
        uint32_t flow = s->returned;
        s->returned = s->flows[flow].next;
        queue_push_front(s, s->flows[flow].queue, flow);
    }
}

static bool host_open(const struct host *host) {
    return host->sending == XCO_NONE && host->held_for == XCO_NONE;
}

/* Begin to wait, last in order: at the host first, from where it is tried if the host is idle. */
void flow_wait(struct xco_schedule *s, uint32_t flow) {
    struct flow *new = &s->flows[flow];
    if (new->state == RESTING && new->queue != XCO_NONE)
        rest_remove(s, flow);
    new->state = new->full_rate ? WAITING : STUCK;
    new->drained = false;
    new->since_ns = s->now_ns;
    new->order = ++s->orders;
    if (new->state == STUCK)
        return;
    age_push(s, flow);
    queue_push(s, queue_of_host(s, new->host), flow);
    if (host_open(&s->hosts[new->host]))
        source_open(s, link_sources(s) + new->host);
}

static void hold(struct xco_schedule *s, uint32_t flow) {
    const struct flow *owner = &s->flows[flow];
    uint32_t link;
    FOR_PATH(s->nodes, owner->host, owner->destination, link) {
        s->nodes[link >> 1].held[link & 1] = owner->full_rate;
        s->nodes[link >> 1].owner[link & 1] = flow;
    }
    s->hosts[owner->host].held_for = flow;
}

static void unhold(struct xco_schedule *s, uint32_t flow) {
    const struct flow *owner = &s->flows[flow];
    uint32_t link;
    FOR_PATH(s->nodes, owner->host, owner->destination, link) {
        s->nodes[link >> 1].held[link & 1] = 0;
        s->nodes[link >> 1].owner[link & 1] = XCO_NONE;
    }
    s->hosts[owner->host].held_for = XCO_NONE;
}

/* The flow has nothing left. What it was served is remembered where that counts. */
void flow_drop(struct xco_schedule *s, uint32_t flow) {
    struct flow *old = &s->flows[flow];
    if (old->state == RESERVED) {
        unhold(s, flow);
        open_path(s, old);
        if (s->hosts[old->host].sending == XCO_NONE)
            source_open(s, link_sources(s) + old->host);
    } else if (old->state == WAITING) {
        queue_remove(s, flow);
        age_remove(s, flow);
    }
    old->state = RESTING;
    old->drained = false;
    old->since_ns = s->now_ns;
    s->hosts[old->host].backlog--;
    if (s->fair && !old->weighted)
        rest_push(s, flow);
    else if (!old->weighted)
        flow_forget(s, flow);
}

/* Add what the flow was served just now, by weight, to its share: log2(2^share + 2^more). */
static void account(struct xco_schedule *s, const struct host *host, struct flow *flow) {
    uint64_t duration = s->now_ns - host->started_ns;
    if (!s->fair || duration == 0)
        return;
    double served = (double)host->rate * (double)duration / flow->weight;
    double more = log2(served) + (double)s->now_ns / s->memory_ns;
    double high = fmax(flow->share, more), low = fmin(flow->share, more);
    flow->share = high + log2(1.0 + exp2(low - high));
}

/* The host sends no more; what it used is free. Its flow is left to the caller. */
static uint32_t stop(struct xco_schedule *s, uint32_t host) {
    struct host *sender = &s->hosts[host];
    uint32_t flow = sender->sending;
    account(s, sender, &s->flows[flow]);
    path_release(s, &s->flows[flow], sender->rate);
    put_back(s);
    open_path(s, &s->flows[flow]);
    sender->sending = XCO_NONE;
    s->owners_tried = s->first_source = 0; /* what was full may have room again */
    return flow;
}

/* After its slice a flow waits anew, or is dropped if it has nothing left. */
static void after_slice(struct xco_schedule *s, uint32_t flow) {
    if (s->flows[flow].drained) {
        s->hosts[s->flows[flow].host].backlog++;
        flow_drop(s, flow);
    } else {
        flow_wait(s, flow);
    }
}

/* The slice of a host that sends has ended. */
void slice_end(struct xco_schedule *s, uint32_t host) {
    uint32_t flow = stop(s, host);
    source_open(s, link_sources(s) + host);
    after_slice(s, flow);
}

static void grant(struct xco_schedule *s, uint32_t flow, uint64_t rate) {
    struct flow *winner = &s->flows[flow];
    struct host *host = &s->hosts[winner->host];
    if (winner->state == RESERVED)
        unhold(s, flow);
    else
        age_remove(s, flow);
    path_occupy(s, winner, rate);
    winner->state = SENDING;
    host->sending = flow;
    host->rate = rate;
    host->started_ns = s->now_ns;
    host->event = s->event;
    s->grants[s->grant_count++] = (struct xco_grant){winner->host, winner->destination, rate};
}

/* Lines 15 and 44: a host that has just started, or was scheduled by this event, is left alone. */
static bool may_preempt(const struct xco_schedule *s, const struct host *host) {
    return !s->fair && s->threshold_ns != XCO_FOREVER && host->event != s->event &&
           s->now_ns - host->started_ns >= s->threshold_ns;
}

/* Whether an owner may have its full rate: on its own path nothing is held for anybody else. */
static bool owner_fits(const struct xco_schedule *s, const struct flow *flow) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link) {
        if (link_free(s, link) < flow->full_rate)
            return false;
    }
    return true;
}

static bool fits(const struct xco_schedule *s, const struct flow *flow, uint64_t *rate) {
    *rate = flow->full_rate;
    if (flow->state == RESERVED)
        return owner_fits(s, flow);
    return path_blocked(s, flow, rate) == XCO_NONE;
}

/* Lines 40 to 46: let a host that sends to somebody else turn to this flow, if it fits then. */
static bool preempt(struct xco_schedule *s, uint32_t flow) {
    const struct flow *winner = &s->flows[flow];
    struct host *host = &s->hosts[winner->host];
    if (!may_preempt(s, host) || (host->held_for != XCO_NONE && host->held_for != flow))
        return false;
    const struct flow *old = &s->flows[host->sending];
    uint64_t rate;
    path_release(s, old, host->rate);
    bool wins = fits(s, winner, &rate);
    path_occupy(s, old, host->rate);
    if (!wins)
        return false;
    uint32_t loser = stop(s, winner->host);
    grant(s, flow, rate);
    after_slice(s, loser);
    return true;
}

/* Try what a link or host that got free is reserved for, before all others. */
static void try_owner(struct xco_schedule *s, uint32_t source) {
    uint32_t flow = source < link_sources(s) ? s->nodes[source >> 1].owner[source & 1]
                                             : s->hosts[source - link_sources(s)].held_for;
    if (flow == XCO_NONE)
        return;
    const struct flow *owner = &s->flows[flow];
    if (s->hosts[owner->host].sending != XCO_NONE)
        preempt(s, flow);
    else if (owner_fits(s, owner))
        grant(s, flow, owner->full_rate);
}

/* The first in order of those that wait at a link and may fit into what is left of it. */
static uint32_t first_at_link(const struct xco_schedule *s, uint32_t link) {
    uint64_t open = link_open(s, link);
    uint32_t first = XCO_NONE;
    for (uint32_t class = 0; class < s->classes; class++) {
        uint32_t head = s->queues[queue_of_link(s, link, class)].head;
        if (head == XCO_NONE || s->class_least[class] > open)
            continue;
        if (first == XCO_NONE || flow_before(s, head, first))
            first = head;
    }
    return first;
}

static uint32_t first_at(const struct xco_schedule *s, uint32_t source) {
    if (source < link_sources(s))
        return first_at_link(s, source);
    uint32_t host = source - link_sources(s);
    return host_open(&s->hosts[host]) ? s->queues[queue_of_host(s, host)].head : XCO_NONE;
}

/* XCO_FAIR: the best of all that wait at what got free; published: source by source, hosts last. */
static uint32_t next_candidate(struct xco_schedule *s, uint32_t *source) {
    uint32_t best = XCO_NONE;
    for (uint32_t i = s->first_source; i < s->source_count; i++) {
        uint32_t first = first_at(s, s->sources[i]);
        if (first == XCO_NONE || (best != XCO_NONE && !flow_before(s, first, best)))
            continue;
        best = first;
        *source = s->sources[i];
        if (s->fair)
            continue;
        s->first_source = i;
        return best;
    }
    return best;
}

/* Grant a flow what it asks for, or let it wait at what blocks it. */
static void try_flow(struct xco_schedule *s, uint32_t flow, uint32_t source) {
    struct flow *tried = &s->flows[flow];
    queue_remove(s, flow);
    if (!host_open(&s->hosts[tried->host])) {
        if (s->hosts[tried->host].sending == XCO_NONE || !preempt(s, flow))
            queue_push(s, queue_of_host(s, tried->host), flow);
        return;
    }
    uint64_t rate = 0;
    uint32_t link = path_blocked(s, tried, &rate);
    if (link == XCO_NONE) {
        grant(s, flow, rate);
    } else if (link == source) {
        tried->queue = queue_of_link(s, link, tried->rate_class);
        tried->next = s->returned;
        s->returned = flow;
    } else {
        queue_push(s, queue_of_link(s, link, tried->rate_class), flow);
    }
}

/* Reserve links and host for who has waited longest, as long as patience is over and none is
 * reserved already. Who cannot be yet is next: nobody overtakes. */
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
        queue_remove(s, flow);
        age_remove(s, flow);
        old->state = RESERVED;
        hold(s, flow);
    }
}

/* Grant until nothing that waits fits: Algorithm 1's main loop, less those it cannot matter to. */
void settle(struct xco_schedule *s) {
    uint32_t source = XCO_NONE, flow;
    do {
        while (s->owners_tried < s->source_count)
            try_owner(s, s->sources[s->owners_tried++]);
        flow = next_candidate(s, &source);
        if (flow != XCO_NONE)
            try_flow(s, flow, source);
    } while (flow != XCO_NONE || s->owners_tried < s->source_count);
    put_back(s);
    for (uint32_t i = 0; i < s->source_count; i++)
        s->is_source[s->sources[i]] = false;
    s->source_count = s->owners_tried = s->first_source = 0;
    reserve_oldest(s);
}
