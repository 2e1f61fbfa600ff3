/* The events: new backlog, ended slices, hosts that left; and the present state. */
#include "scheduler/schedule.h"

#include <errno.h>
#include <math.h>

#include "scheduler/paths.h"

static void begin(struct xco_schedule *s, uint64_t now_ns, struct xco_grant *grants) {
    s->now_ns = now_ns > s->now_ns ? now_ns : s->now_ns;
    s->event++;
    s->grants = grants;
    s->grant_count = 0;
}

/* Add last that a sending host has stopped. */
static int finish(struct xco_schedule *s, uint32_t host, bool was_sending) {
    settle(s);
    if (was_sending && s->hosts[host].sending == XCO_NONE)
        s->grants[s->grant_count++] = (struct xco_grant){host, XCO_NONE, 0};
    return s->grant_count;
}

static bool valid(const struct xco_schedule *s, uint32_t host, uint32_t destination) {
    return host < s->host_count && destination < s->host_count && host != destination;
}

/* Mark the flow as backlogged, whatever its previous state. */
static void become_backlogged(struct xco_schedule *s, uint32_t host, uint32_t destination) {
    uint32_t found = flow_find(s, host, destination);
    uint32_t flow = found == XCO_NONE ? flow_make(s, host, destination) : found;
    struct flow *now = &s->flows[flow];
    now->group = s->group;
    if (now->state == RESTING) {
        s->hosts[host].backlog++;
        flow_wait(s, flow);
    } else if (now->drained) {
        s->hosts[host].backlog++;
        now->drained = false;
    }
}

/* Clear a host's former backlog; a flow that is being sent keeps its grant. */
static void drop_others(struct xco_schedule *s, uint32_t host) {
    uint32_t at = s->hosts[host].flows;
    if (at == XCO_NONE)
        return;
    uint32_t last = s->flows[at].before, next;
    for (bool more = true; more; at = next) {
        struct flow *flow = &s->flows[at];
        next = flow->after;
        more = at != last;
        if (flow->group == s->group || flow->state == RESTING || flow->drained)
            continue;
        if (flow->state == SENDING) {
            flow->drained = true;
            s->hosts[host].backlog--;
        } else {
            flow_drop(s, at);
        }
    }
}

int xco_schedule_backlogged(struct xco_schedule *s, uint64_t now_ns, uint32_t host,
                            const uint32_t *destinations, size_t count, struct xco_grant *grants) {
    if (host >= s->host_count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!valid(s, host, destinations[i]))
            return -EINVAL;
    if (backlog_room(s, host, destinations, count))
        return -ENOMEM;
    begin(s, now_ns, grants);
    s->group++;
    for (size_t i = 0; i < count; i++)
        become_backlogged(s, host, destinations[i]);
    drop_others(s, host);
    return finish(s, host, false);
}

int xco_schedule_add(struct xco_schedule *s, uint64_t now_ns, uint32_t host, uint32_t destination,
                     struct xco_grant *grants) {
    if (!valid(s, host, destination))
        return -EINVAL;
    if (backlog_room(s, host, &destination, 1))
        return -ENOMEM;
    begin(s, now_ns, grants);
    become_backlogged(s, host, destination);
    return finish(s, host, false);
}

int xco_schedule_expired(struct xco_schedule *s, uint64_t now_ns, uint32_t host,
                         struct xco_grant *grants) {
    if (host >= s->host_count)
        return -EINVAL;
    begin(s, now_ns, grants);
    if (s->hosts[host].sending == XCO_NONE)
        return 0;
    slice_end(s, host);
    return finish(s, host, true);
}

int xco_schedule_gave_up(struct xco_schedule *s, uint64_t now_ns, uint32_t host,
                         struct xco_grant *grants) {
    if (host >= s->host_count)
        return -EINVAL;
    begin(s, now_ns, grants);
    uint32_t sending = s->hosts[host].sending;
    if (sending == XCO_NONE)
        return 0;
    if (!s->flows[sending].drained)
        s->hosts[host].backlog--;
    s->flows[sending].drained = true;
    slice_end(s, host);
    return finish(s, host, true);
}

/* Forget all flows of a host, including their service and weights. */
static void forget_host(struct xco_schedule *s, uint32_t host) {
    while (s->hosts[host].flows != XCO_NONE) {
        uint32_t flow = s->hosts[host].flows;
        s->flows[flow].weighted = true; /* so that dropping it does not forget it yet */
        if (s->flows[flow].state != RESTING)
            flow_drop(s, flow);
        flow_forget(s, flow);
    }
}

int xco_schedule_leave(struct xco_schedule *s, uint64_t now_ns, uint32_t host,
                       struct xco_grant *grants) {
    if (host >= s->host_count)
        return -EINVAL;
    begin(s, now_ns, grants);
    bool was_sending = s->hosts[host].sending != XCO_NONE;
    if (was_sending)
        slice_end(s, host);
    forget_host(s, host);
    return finish(s, host, was_sending);
}

int xco_schedule_weigh_host(struct xco_schedule *s, uint32_t host, double weight) {
    if (host >= s->host_count || !(weight > 0.0) || isinf(weight))
        return -EINVAL;
    s->hosts[host].weight = weight;
    return 0;
}

int xco_schedule_weigh(struct xco_schedule *s, uint32_t host, uint32_t destination, double weight) {
    if (!valid(s, host, destination) || !(weight > 0.0) || isinf(weight))
        return -EINVAL;
    if (flows_room(s, 1))
        return -ENOMEM;
    uint32_t found = flow_find(s, host, destination);
    uint32_t flow = found == XCO_NONE ? flow_make(s, host, destination) : found;
    if (s->flows[flow].place == AT_REST)
        rest_remove(s, flow);
    s->flows[flow].weight = weight;
    s->flows[flow].weighted = true;
    return 0;
}
