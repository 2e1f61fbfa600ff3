/* How grants begin and end, which flows wait, and what is reserved. */
#include "scheduler/paths.h"

/* Note that a link or host became free: its waiting flows are tried before the event is over. */
void source_open(struct xco_schedule *s, uint32_t what) {
    if (s->source_at[what]) {
        s->sources[s->source_at[what] - 1].done = false;
        return;
    }
    s->sources[s->source_count++] = (struct source){what, XCO_NONE, false};
    s->source_at[what] = s->source_count;
}

static void open_path(struct xco_schedule *s, const struct flow *flow) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link) {
        bool own = is_hosts(s, link) && link % 2 == UP; /* only a reservation waits there */
        if (!own || s->nodes[link >> 1].owner[UP] != XCO_NONE)
            source_open(s, link);
    }
}

static void host_changed(struct xco_schedule *s, uint32_t host) {
    s->ready[host] = s->hosts[host].sending == XCO_NONE && s->hosts[host].held_for == XCO_NONE;
}

static void target_changed(struct xco_schedule *s, uint32_t host) {
    s->room[host] = s->nodes[host].free[DOWN] >= least_rate(s, s->class_rate[0]);
}

/* Begin to wait, last in order. The flow is tried if its host is ready. */
void flow_wait(struct xco_schedule *s, uint32_t flow) {
    struct flow *new = &s->flows[flow];
    bool is_new = new->state == RESTING;
    if (new->place == AT_REST)
        rest_remove(s, flow);
    new->state = new->full_rate ? WAITING : STUCK;
    new->drained = false;
    new->since_ns = s->now_ns;
    new->order = ++s->orders;
    if (!s->fair)
        new->rank = (double)new->order;
    if (new->state == STUCK)
        return;
    age_push(s, flow);
    if (is_new)
        backlog_add(s, flow);
    else
        backlog_rank(s, flow);
    if (s->ready[new->host])
        source_open(s, link_sources(s) + new->host);
}

void hold(struct xco_schedule *s, uint32_t flow) {
    const struct flow *owner = &s->flows[flow];
    uint32_t link;
    FOR_PATH(s->nodes, owner->host, owner->destination, link) {
        s->nodes[link >> 1].held[link & 1] = owner->full_rate;
        s->nodes[link >> 1].owner[link & 1] = flow;
    }
    s->hosts[owner->host].held_for = flow;
    host_changed(s, owner->host);
}

static void unhold(struct xco_schedule *s, uint32_t flow) {
    const struct flow *owner = &s->flows[flow];
    uint32_t link;
    FOR_PATH(s->nodes, owner->host, owner->destination, link) {
        s->nodes[link >> 1].held[link & 1] = 0;
        s->nodes[link >> 1].owner[link & 1] = XCO_NONE;
    }
    s->hosts[owner->host].held_for = XCO_NONE;
    host_changed(s, owner->host);
}

/* The flow has no backlog left. Its service is remembered where that counts. */
void flow_drop(struct xco_schedule *s, uint32_t flow) {
    struct flow *old = &s->flows[flow];
    if (old->state == RESERVED) {
        unhold(s, flow);
        open_path(s, old);
        if (s->ready[old->host])
            source_open(s, link_sources(s) + old->host);
    } else if (old->state == WAITING) {
        flow_unpark(s, flow);
        age_remove(s, flow);
    }
    if (old->state != STUCK)
        backlog_remove(s, flow);
    old->state = RESTING;
    old->drained = false;
    old->since_ns = s->now_ns;
    s->hosts[old->host].backlog--;
    if (s->fair && !old->weighted)
        rest_push(s, flow);
    else if (!old->weighted)
        flow_forget(s, flow);
}

/* Add the flow's latest service, by weight, to its share. The weight is the host's: each of its
 * backlogged flows has an even part of it. */
static void account(struct xco_schedule *s, const struct host *host, struct flow *flow) {
    uint64_t duration = s->now_ns - host->started_ns;
    if (!s->fair || duration == 0)
        return;
    double flows = host->backlog + (flow->drained ? 1.0 : 0.0);
    double served = (double)host->rate * (double)duration * flows / flow->weight;
    flow->rank = share_more(&s->shares, flow->rank, served, s->now_ns);
}

/* The host stops sending; its capacity is free. The caller handles its flow. */
static uint32_t stop(struct xco_schedule *s, uint32_t host) {
    struct host *sender = &s->hosts[host];
    uint32_t flow = sender->sending;
    account(s, sender, &s->flows[flow]);
    path_release(s, &s->flows[flow], sender->rate);
    target_changed(s, s->flows[flow].destination);
    open_path(s, &s->flows[flow]);
    sender->sending = XCO_NONE;
    host_changed(s, host);
    s->owners_tried = 0; /* full links may have room again */
    return flow;
}

/* After its slice a flow waits again, or is dropped if it has no backlog. */
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

void grant(struct xco_schedule *s, uint32_t flow, uint64_t rate) {
    struct flow *winner = &s->flows[flow];
    struct host *host = &s->hosts[winner->host];
    if (winner->state == RESERVED) {
        unhold(s, flow);
    } else {
        flow_unpark(s, flow);
        age_remove(s, flow);
    }
    path_occupy(s, winner, rate);
    target_changed(s, winner->destination);
    winner->state = SENDING;
    host->sending = flow;
    host->rate = rate;
    host->started_ns = s->now_ns;
    host->event = s->event;
    host_changed(s, winner->host);
    s->grants[s->grant_count++] = (struct xco_grant){winner->host, winner->destination, rate};
}

/* Lines 15 and 44: a host that has just started, or was scheduled by this event, is not
 * preempted. */
static bool may_preempt(const struct xco_schedule *s, const struct host *host) {
    return !s->fair && s->threshold_ns != XCO_FOREVER && host->sending != XCO_NONE &&
           host->event != s->event && s->now_ns - host->started_ns >= s->threshold_ns;
}

/* Whether an owner may have its full rate: its own path has no reservation for another flow. */
bool owner_fits(const struct xco_schedule *s, const struct flow *flow) {
    uint32_t link;
    FOR_PATH(s->nodes, flow->host, flow->destination, link) {
        if (link_free(s, link) < flow->full_rate)
            return false;
    }
    return true;
}

/* Lines 40 to 46: whether a host that sends to another destination may switch to this flow,
 * which then fits. */
bool can_preempt(struct xco_schedule *s, uint32_t flow, uint64_t *rate) {
    const struct flow *winner = &s->flows[flow];
    const struct host *host = &s->hosts[winner->host];
    if (!may_preempt(s, host) || (host->held_for != XCO_NONE && host->held_for != flow))
        return false;
    const struct flow *old = &s->flows[host->sending];
    path_release(s, old, host->rate);
    *rate = winner->full_rate;
    bool wins = winner->state == RESERVED ? owner_fits(s, winner)
                                          : path_blocked(s, winner, rate) == XCO_NONE;
    path_occupy(s, old, host->rate);
    return wins;
}

void preempt(struct xco_schedule *s, uint32_t flow, uint64_t rate) {
    uint32_t loser = stop(s, s->flows[flow].host);
    grant(s, flow, rate);
    after_slice(s, loser);
}
