// What a sender may send to each host, while it lives without a controller. Pure.
#include "coordinator/engine/allowances.h"

#include "coordinator/engine/by_steps.h"
#include "coordinator/engine/orders.h"
#include "coordinator/engine/shares.h"
#include "common/least.h"

#define WAITED_NS 20000000 // a gate that was empty for less counts as one where something waits
#define GUARANTEED 20u     // of the safe share, one part is certain, whatever others say
#define NEWS 200u // a change by this part is worth setting a gate

// The destinations of one host, by gate.
struct plan {
    unsigned gates[XCO_OUTSIDE];
    uint64_t caps_bps[XCO_OUTSIDE]; // by the destination and the links on the way
    struct xco_demand demands[XCO_OUTSIDE]; // of that, what would be sent
    bool waits[XCO_OUTSIDE];
    bool fresh[XCO_OUTSIDE];
    size_t count;
};

static bool waits(const struct xco_destination *destination, int64_t now_ns) {
    if (destination->empty_since_ns == XCO_NEVER) {
        return destination->backlog_bytes > 0;
    }
    return now_ns - destination->empty_since_ns < WAITED_NS && destination->rate_bps > 0;
}

// Returns what the links on the way let pass, by their marks.
static uint64_t marked(const struct xco_peers *peers, const struct xco_peer *peer) {
    const uint64_t line = peers->config.line_bps;
    if (peers->config.published) {
        return (uint64_t)xco_steps_allowed(peer->pair.rate_bps, (double)line);
    }
    return peer->pair.rate_bps < (double)line ? (uint64_t)peer->pair.rate_bps : line;
}

static uint64_t cap(const struct xco_peers *peers, const struct xco_peer *peer, uint64_t safe_bps) {
    const uint64_t offer = peers->config.published ? UINT64_MAX : peer->told.offer_bps;
    return xco_most(xco_most(xco_least(offer, marked(peers, peer)), safe_bps / GUARANTEED), 1);
}

static void note_promised(struct xco_peer *peer, const struct xco_destination *destination) {
    peer->weight = destination->weight;
    peer->guarantee_mbps = destination->guarantee_mbps;
}

// Returns a demand with the weight and guarantee of its VMs, which the published law ignores.
static struct xco_demand demand(const struct xco_peers *peers, const struct xco_peer *peer,
                                uint64_t rate_bps) {
    const bool counts = !peers->config.published;
    return (struct xco_demand){
        .rate_bps = rate_bps,
        .guarantee_mbps = counts ? peer->guarantee_mbps : 0,
        .weight = counts && peer->weight > 0 ? peer->weight : 1,
    };
}

static void note_sent(struct xco_peer *peer, const struct xco_destination *destination,
                      int64_t now_ns) {
    if (destination->sent_bytes != peer->sent_bytes || destination->backlog_bytes > 0) {
        peer->sent_bytes = destination->sent_bytes;
        peer->sent_ns = now_ns;
    }
}

static void add(struct plan *plan, struct xco_peers *peers, const struct xco_core *core,
                unsigned gate, int64_t now_ns) {
    const struct xco_destination *destination = &core->destinations[gate];
    struct xco_peer *peer = &peers->list[destination->host];
    const uint64_t safe = xco_order_safe(core, destination), rate = destination->rate_bps;
    const size_t at = plan->count++;
    note_sent(peer, destination, now_ns);
    note_promised(peer, destination);
    plan->gates[at] = gate;
    plan->waits[at] = waits(destination, now_ns);
    plan->fresh[at] = xco_peers_fresh(peer, now_ns, core->config.silence_ns) &&
                      (peers->config.published || peer->told.offer_bps > 0);
    plan->caps_bps[at] = plan->fresh[at] ? cap(peers, peer, safe) : safe;
    const uint64_t most = plan->waits[at] ? UINT64_MAX : rate + rate / 8;
    plan->demands[at] = demand(peers, peer, xco_least(most, plan->caps_bps[at]));
}

// Grants guarantees of the line; returns the level at which demands share the rest.
static uint64_t share_line(struct plan *plan, uint64_t line_bps) {
    xco_shares_grant(plan->demands, plan->count, line_bps);
    return xco_shares_level(plan->demands, plan->count, line_bps);
}

// Returns what could be sent to a destination if it offered everything.
static uint64_t wanted(struct plan *plan, const struct xco_peers *peers,
                       const struct xco_peer *peer, size_t at) {
    if (!plan->waits[at]) {
        return 0;
    }
    const uint64_t line = peers->config.line_bps;
    const struct xco_demand before = plan->demands[at];
    plan->demands[at] = demand(peers, peer, line);
    const uint64_t level = share_line(plan, line);
    const uint64_t part = xco_least(xco_shares_part(&plan->demands[at], level), line);
    plan->demands[at] = before;
    return xco_most(1, xco_least(part, plan->fresh[at] ? marked(peers, peer) : line));
}

static bool is_news(const struct xco_destination *destination, uint64_t rate_bps) {
    const uint64_t before = destination->allowed_bps;
    const uint64_t apart = rate_bps > before ? rate_bps - before : before - rate_bps;
    return apart > before / NEWS || (rate_bps == 0) != (before == 0);
}

static void allow(struct xco_destination *destination, uint64_t rate_bps) {
    if (is_news(destination, rate_bps)) {
        destination->allowed_bps = rate_bps;
    }
}

void xco_allowances_set(struct xco_peers *peers, struct xco_core *core, int64_t now_ns) {
    struct plan plan = {.count = 0};
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        if (destination->used && destination->host < peers->count) {
            add(&plan, peers, core, gate, now_ns);
        }
    }
    for (size_t at = 0; at < plan.count; at++) {
        struct xco_peer *peer = &peers->list[core->destinations[plan.gates[at]].host];
        peer->wants_bps = wanted(&plan, peers, peer, at);
    }
    const uint64_t level = share_line(&plan, peers->config.line_bps);
    for (size_t at = 0; at < plan.count; at++) {
        const uint64_t part = xco_shares_part(&plan.demands[at], level);
        allow(&core->destinations[plan.gates[at]],
              plan.fresh[at] ? xco_least(plan.caps_bps[at], part) : 0);
    }
}

unsigned xco_allowances_offered(const struct xco_core *core) {
    unsigned count = 0;
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        count += destination->used && destination->allowed_bps > 0;
    }
    return count;
}
