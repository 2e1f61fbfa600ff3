// Rates outside turns yield: a host with a promised rate on a link sends less when a turn needs it.
//
// This keeps links free of congestion from one plan to the next, so that a plan can wait. It goes
// through only the links of the turn, and only those that have promised too much.
#include "controller/engine/yield.h"

#include "controller/engine/directive.h"
#include "controller/engine/outbox.h"
#include "controller/engine/rates.h"

#define WHOLE 1024u // denominator of the factors that scale rates

// The first entry is the turn's own destination; the others are outside the turn.
static size_t first_extra(const struct xco_directive *directive) {
    return directive->mode == XCO_SLICE ? 1 : 0;
}

// Scales what a directive permits over a link outside its turn; returns whether anything changed.
static bool scale(const struct xco_control *core, struct xco_directive *directive, uint32_t link,
                  uint64_t factor) {
    size_t kept = first_extra(directive);
    bool changed = false;
    for (size_t i = kept; i < directive->count; i++) {
        struct xco_permit entry = directive->entries[i];
        if (xco_network_crosses(&core->network, directive->to, entry.destination, link)) {
            entry.rate_bps = entry.rate_bps / WHOLE * factor;
            changed = true;
        }
        if (xco_rates_worth(core, directive->to, entry.rate_bps)) {
            directive->entries[kept++] = entry;
        }
    }
    directive->count = (uint16_t)kept;
    directive->mode = kept == 0 ? XCO_CLOSED : directive->mode;
    return changed;
}

static bool goes_on(const struct xco_directive *directive, uint64_t at_ns) {
    return directive->count > first_extra(directive) &&
           (directive->end_ns == 0 || directive->end_ns > at_ns);
}

// Sends again what holds before an announced plan begins, and then the plan.
static void scale_held(struct xco_control *core, uint32_t host, uint32_t link, uint64_t factor) {
    struct xco_peer *peer = core->peers[host];
    if (scale(core, &peer->held, link, factor)) {
        peer->cut_due = peer->plan_due = true;
        xco_control_queue(core, host);
    }
}

static void scale_host(struct xco_control *core, uint32_t host, uint32_t link, uint64_t factor,
                       uint64_t now_ns, uint64_t at_ns) {
    const struct xco_peer *peer = core->peers[host];
    if (!peer->joined) {
        return;
    }
    const bool announced = peer->plan.start_ns > now_ns;
    if (announced && peer->plan.start_ns > at_ns && goes_on(&peer->held, at_ns)) {
        scale_held(core, host, link, factor);
    }
    struct xco_directive plan = peer->plan;
    if (goes_on(&plan, at_ns) && scale(core, &plan, link, factor)) {
        plan.start_ns = announced ? plan.start_ns : at_ns;
        xco_control_plan(core, host, &plan, now_ns);
    }
}

// Scales a link's promises to the capacity left.
static void yield_link(struct xco_control *core, uint32_t link, uint64_t now_ns, uint64_t at_ns) {
    struct xco_promised *promised = &core->extras.links[link];
    const uint64_t left = xco_rates_left(core, link, now_ns);
    if (promised->rate_bps <= left) {
        return;
    }
    const uint64_t factor = left / (promised->rate_bps / WHOLE + 1);
    for (uint32_t i = promised->first; i != XCO_NONE; i = core->extras.hosts[i].next) {
        scale_host(core, core->extras.hosts[i].host, link, factor, now_ns, at_ns);
    }
    promised->rate_bps = left;
}

void xco_yield(struct xco_control *core, const struct xco_grant *grant, uint64_t now_ns,
               uint64_t at_ns) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, grant->host, grant->destination, path);
    for (size_t i = 0; i < length; i++) {
        yield_link(core, path[i], now_ns, at_ns);
    }
}

// Notes what a directive permits outside its turn, beyond what `besides` permits.
static void note(struct xco_control *core, uint32_t host, const struct xco_directive *directive,
                 const struct xco_directive *besides) {
    uint32_t path[XCO_PATH_MAX];
    for (size_t i = first_extra(directive); i < directive->count; i++) {
        const struct xco_permit *entry = &directive->entries[i];
        const uint64_t noted =
            besides == NULL ? 0 : xco_directive_rate_at(besides, entry->destination, 0);
        if (entry->rate_bps <= noted) {
            continue;
        }
        const size_t length = xco_network_path(&core->network, host, entry->destination, path);
        for (size_t j = 0; j < length; j++) {
            core->failed |= !xco_extras_note(&core->extras, path[j], host, entry->rate_bps - noted);
        }
    }
}

void xco_yield_note(struct xco_control *core, uint64_t now_ns) {
    xco_extras_clear(&core->extras, xco_network_directed(&core->network));
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        const struct xco_peer *peer = core->peers[host];
        if (peer == NULL || !peer->joined) {
            continue;
        }
        note(core, host, &peer->plan, NULL);
        if (peer->plan.start_ns > now_ns) {
            note(core, host, &peer->held, &peer->plan);
        }
    }
}
