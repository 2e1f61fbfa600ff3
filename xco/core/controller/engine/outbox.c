// Messages due to hosts, and the core's timers.
#include "controller/engine/outbox.h"

#include "controller/engine/directive.h"

void xco_control_queue(struct xco_control *core, uint32_t host) {
    if (core->peers[host]->queued) {
        return;
    }
    core->peers[host]->queued = true;
    core->outbox[(core->outbox_first + core->outbox_count++) % core->network.hosts] = host;
}

void xco_control_timer(struct xco_control *core, uint64_t at_ns, uint32_t kind, uint32_t host,
                       uint64_t stamp) {
    if (!xco_timers_add(&core->timers, (struct xco_timer){at_ns, stamp, host, kind})) {
        core->failed = true;
    }
}

// Withdraws a plan announced for an earlier instant than the next one: it may begin before its host
// hears of the next one, and its capacity was not reserved until then.
static void take_back(struct xco_peer *peer, uint64_t now_ns) {
    struct xco_directive *held = &peer->held;
    const uint64_t start_ns = peer->plan.start_ns;
    if (peer->plan.mode == held->mode && peer->plan.end_ns == held->end_ns) {
        xco_directive_clip(held, &peer->plan, now_ns); // what it would have lowered falls now
    } else if (peer->plan.mode != XCO_RATE) {
        return; // a turn: its links are reserved
    } else if (held->mode != XCO_CLOSED && (held->end_ns == 0 || held->end_ns > start_ns)) {
        held->end_ns = start_ns;
    }
    peer->cut_due = true;
}

// Keeps what a host obeys until its new plan starts. If the host has not received that yet, it is
// sent before the new plan.
static void hold(struct xco_peer *peer, const struct xco_directive *plan, uint64_t now_ns) {
    if (peer->plan.start_ns <= now_ns && !peer->cut_due) {
        peer->held = peer->plan;
        peer->cut_due = peer->plan_due && plan->start_ns > now_ns;
    } else if (peer->plan.start_ns > now_ns && plan->start_ns > peer->plan.start_ns) {
        take_back(peer, now_ns);
    }
}

void xco_control_plan(struct xco_control *core, uint32_t host, const struct xco_directive *plan,
                      uint64_t now_ns) {
    struct xco_peer *peer = core->peers[host];
    hold(peer, plan, now_ns);
    peer->held.to = (uint16_t)host;
    peer->plan = *plan;
    peer->plan.to = (uint16_t)host;
    peer->plan_due = true;
    if (peer->heard_ns == now_ns) {
        peer->changed_ns = peer->echo_received_ns; // it answers this report: the delay is measured
    }
    xco_control_queue(core, host);
}

void xco_control_cut(struct xco_control *core, uint32_t host, uint64_t now_ns, uint64_t end_ns) {
    struct xco_peer *peer = core->peers[host];
    const bool pending = peer->plan.start_ns > now_ns;
    if (!pending) {
        peer->held = peer->plan;
    } else if (peer->plan.start_ns < end_ns) {
        end_ns = peer->plan.start_ns;
    }
    const bool permits = peer->held.mode == XCO_OPEN || peer->held.count > 0;
    if (permits && (peer->held.end_ns == 0 || peer->held.end_ns > end_ns)) {
        peer->held.to = (uint16_t)host;
        peer->held.end_ns = end_ns;
        peer->cut_due = true;
        xco_control_queue(core, host);
    }
}

void xco_control_dirty(struct xco_control *core, uint64_t from_ns) {
    if (core->settings.strategy == XCO_TIMESLICE && !core->settings.on_demand) {
        return;
    }
    core->plan_dirty = true;
    core->plan_from_ns = from_ns > core->plan_from_ns ? from_ns : core->plan_from_ns;
}

void xco_control_plan_at(struct xco_control *core, uint64_t at_ns) {
    if (core->plan_timed_ns == 0 || at_ns < core->plan_timed_ns) {
        core->plan_timed_ns = at_ns;
        xco_control_timer(core, at_ns, XCO_TIMER_PLAN, 0, 0);
    }
}

uint64_t xco_control_paced(const struct xco_control *core, uint64_t rate_bps) {
    return rate_bps / 1000 * core->settings.pace_permille +
           rate_bps % 1000 * core->settings.pace_permille / 1000;
}
