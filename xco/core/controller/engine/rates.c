// Rates: the strategies `rate` and `gcc`, and what `hybrid` hands out where slices leave it free.
#include "controller/engine/rates.h"

#include <stdlib.h>

#include "controller/engine/directive.h"
#include "controller/engine/fallback.h"
#include "controller/engine/gather.h"
#include "controller/engine/outbox.h"
#include "controller/engine/ports.h"
#include "controller/engine/sources.h"
#include "controller/engine/water.h"
#include "common/least.h"

// `hybrid` hands out what a link has left only if a flow gets this share of its host's rate: less
// is not worth a directive.
#define LEAST_SHARE 64u

uint64_t xco_rates_left(const struct xco_control *core, uint32_t link, uint64_t now_ns) {
    if (core->settings.strategy == XCO_GCC) {
        return xco_fallen_leave(core, link, xco_ports_left(core, link, now_ns));
    }
    const uint64_t capacity = xco_network_capacity(&core->network, link);
    const uint64_t used =
        core->settings.strategy == XCO_BY_RATE ? 0 : xco_schedule_used_bps(core->schedule, link);
    const uint64_t left = xco_fallen_leave(core, link, capacity > used ? capacity - used : 0);
    return xco_control_paced(core, left);
}

static void set_left(struct xco_control *core, uint64_t now_ns) {
    for (uint32_t link = 0; link < xco_network_directed(&core->network); link++) {
        core->fill.left_bps[link] = xco_rates_left(core, link, now_ns);
    }
}

static int by_source(const void *left, const void *right) {
    const struct xco_fill_flow *a = left;
    const struct xco_fill_flow *b = right;
    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }
    return a->destination < b->destination ? -1 : a->destination > b->destination;
}

static bool is_same(const struct xco_directive *a, const struct xco_directive *b) {
    if (a->mode != b->mode || a->count != b->count || a->end_ns != b->end_ns) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->entries[i].rate_bps != xco_directive_rate_at(b, a->entries[i].destination, 0)) {
            return false;
        }
    }
    return true;
}

// Whether `plan` permits a higher rate than `before` to some destination.
static bool rises(const struct xco_directive *plan, const struct xco_directive *before,
                  uint64_t at_ns) {
    for (size_t i = 0; i < plan->count; i++) {
        const struct xco_permit *entry = &plan->entries[i];
        if (entry->rate_bps > xco_directive_rate_at(before, entry->destination, at_ns)) {
            return true;
        }
    }
    return false;
}

// Announces decreases now, and schedules a check for increases once the decreases were heard.
static uint64_t only_falls(struct xco_control *core, const struct xco_peer *peer,
                           struct xco_directive *plan, uint64_t now_ns, uint64_t from_ns) {
    xco_control_plan_at(core, from_ns + core->settings.lead_ns);
    xco_directive_clip(plan, &peer->plan, from_ns);
    if (peer->plan.start_ns <= now_ns) {
        return from_ns;
    }
    // it is still in force, and may start before the announced one
    xco_directive_clip(plan, &peer->held, now_ns);
    return peer->plan.start_ns < from_ns ? peer->plan.start_ns : from_ns;
}

// Decreases hold immediately. Increases hold a lead time later, when the others have heard their
// decreases: so a link is never promised twice. A plan with increases and decreases is announced in
// two steps, and so is one that would replace an announced one.
static void tell(struct xco_control *core, uint32_t host, struct xco_directive *plan,
                 uint64_t now_ns) {
    const struct xco_peer *peer = core->peers[host];
    uint64_t start = core->plan_from_ns > now_ns ? core->plan_from_ns : now_ns;
    if (is_same(plan, &peer->plan)) {
        return;
    }
    if (peer->plan_due && peer->plan.mode == XCO_SLICE) { // announce a turn that begins as it is
        xco_control_plan_at(core, start + core->settings.lead_ns);
        return;
    }
    if (peer->plan.start_ns > now_ns ||
        (rises(plan, &peer->plan, start) && rises(&peer->plan, plan, now_ns))) {
        start = only_falls(core, peer, plan, now_ns, start);
    } else if (rises(plan, &peer->plan, start)) {
        start += core->settings.lead_ns;
    }
    plan->start_ns = start > plan->start_ns ? start : plan->start_ns;
    if (plan->end_ns == 0 || plan->start_ns < plan->end_ns) {
        xco_control_plan(core, host, plan, now_ns);
    }
}

// Starts a host's plan with its turn, if it has one.
static struct xco_directive begun(const struct xco_control *core, uint32_t host) {
    const struct xco_turn *turn = &core->peers[host]->turn;
    if (turn->destination == XCO_NONE) {
        return (struct xco_directive){.mode = XCO_RATE};
    }
    return (struct xco_directive){
        .mode = XCO_SLICE,
        .count = 1,
        .start_ns = turn->start_ns,
        .end_ns = turn->end_ns,
        .entries = {{(uint16_t)turn->destination, turn->told_bps}},
    };
}

bool xco_rates_worth(const struct xco_control *core, uint32_t host, uint64_t rate_bps) {
    return !xco_grants_slices(core->settings.strategy) ||
           rate_bps >= xco_network_host_rate(&core->network, host) / LEAST_SHARE;
}

// Announces its flows to a host: up to `count` from `flows` on; returns how many are its own.
static size_t tell_host(struct xco_control *core, uint32_t host, const struct xco_fill_flow *flows,
                        size_t count, uint64_t now_ns) {
    struct xco_directive plan = begun(core, host);
    const bool announced = plan.mode == XCO_SLICE && plan.start_ns > now_ns; // keep its start
    size_t own = 0;
    for (; own < count && flows[own].source == host; own++) {
        if (!announced && plan.count < XCO_ENTRIES_MAX &&
            xco_rates_worth(core, host, flows[own].rate_bps)) {
            plan.entries[plan.count++] = (struct xco_permit){
                (uint16_t)flows[own].destination, xco_most(1, flows[own].rate_bps)}; // 0: no limit
        }
    }
    if (plan.count == 0) {
        plan.mode = XCO_CLOSED;
    }
    tell(core, host, &plan, now_ns);
    return own;
}

// Sets the rates of the flows by the strategy and its law; they are in the order of their sources
// before and after.
static void set_rates(struct xco_control *core, uint64_t now_ns, size_t count) {
    if (core->settings.strategy == XCO_GCC && core->settings.published) {
        xco_sources_plan(core, now_ns, core->flows, count);
        return;
    }
    set_left(core, now_ns);
    if (!core->settings.max_min && core->settings.strategy == XCO_BY_RATE) {
        xco_fill_equal(&core->fill, &core->network, core->flows, count);
        return;
    }
    xco_fill_guarantees(&core->fill, &core->network, core->flows, count);
    xco_water_fill(&core->fill, &core->network, core->flows, count);
    if (count > 0) {
        qsort(core->flows, count, sizeof *core->flows, by_source);
    }
}

void xco_rates_plan(struct xco_control *core, uint64_t now_ns) {
    const size_t count = xco_gather(core, now_ns);
    set_rates(core, now_ns, count);
    size_t told = 0;
    for (uint32_t host = 0; host < core->network.hosts && !core->failed; host++) {
        if (xco_gather_planned(core->peers[host])) {
            told += tell_host(core, host, core->flows + told, count - told, now_ns);
        }
    }
    core->plan_visits += core->fill.visits;
}
