// Directives in the host's time: which one is in force, and what it permits; part of the core.
#include "coordinator/engine/orders.h"

#include <string.h>

#include "coordinator/engine/drain.h"

#define SLOWEST_BPS 8000

bool xco_order_of(struct xco_order *order, const struct xco_header *header,
                  const struct xco_directive *directive, const struct xco_clock_sample *offset) {
    bool timed = directive->start_ns != 0 || directive->end_ns != 0;
    if (timed && offset == NULL) {
        return false;
    }
    int64_t shift = offset == NULL ? 0 : offset->offset_ns;
    *order = (struct xco_order){
        .known = true,
        .mode = directive->mode,
        .count = directive->count,
        .sequence = header->sequence,
        .start_ns = directive->start_ns == 0 ? INT64_MIN : (int64_t)directive->start_ns - shift,
        .end_ns = directive->end_ns == 0 ? XCO_NEVER : (int64_t)directive->end_ns - shift,
        .shift_ns = shift,
    };
    memcpy(order->permits, directive->entries, sizeof order->permits);
    return true;
}

void xco_order_promote(struct xco_core *core, int64_t now_ns) {
    bool sliced = core->next.mode == XCO_SLICE;
    if (core->next.known && now_ns + (sliced ? core->advance_ns : 0) >= core->next.start_ns) {
        xco_drain_judge_end(core);
        core->current = core->next;
        core->next.known = false;
        core->counts.slices += core->current.mode == XCO_SLICE;
        for (unsigned gate = 0; gate < XCO_GATES; gate++) {
            // observations from an earlier slice do not apply to this one
            core->destinations[gate].empty_since_ns = XCO_NEVER;
            core->destinations[gate].look_ns = now_ns;
            xco_drain_begin(core, &core->destinations[gate], now_ns);
        }
    }
}

// Whether an order only moves the end of the running turn: both begin at one instant of the
// controller's clock.
static bool is_same_turn(const struct xco_order *current, const struct xco_order *order) {
    return current->known && current->mode == XCO_SLICE && order->mode == XCO_SLICE &&
           order->start_ns + order->shift_ns == current->start_ns + current->shift_ns;
}

// The host's report on a turn stays valid when its end moves. The controller grants time that it
// took back to other hosts only after an acknowledgement: so the report is sent immediately.
static void carry_on(struct xco_core *core, int64_t now_ns) {
    const struct xco_order *current = &core->current;
    struct xco_order *next = &core->next;
    if (next->end_ns < current->end_ns && now_ns < current->end_ns) {
        core->report_wanted = true;
    }
    next->given_up = current->given_up;
    next->leaving = current->leaving;
    if (next->leaving && current->end_ns < next->end_ns) {
        next->end_ns = current->end_ns;
    }
}

void xco_order_take(struct xco_core *core, int64_t now_ns, const struct xco_order *order) {
    core->next = *order;
    if (is_same_turn(&core->current, order)) {
        carry_on(core, now_ns);
    }
    xco_order_promote(core, now_ns);
}

// Returns the permit for a destination, or NULL.
static const struct xco_permit *permit_of(const struct xco_order *order, uint16_t host) {
    for (unsigned i = 0; i < order->count; i++) {
        if (order->permits[i].destination == host) {
            return &order->permits[i];
        }
    }
    return NULL;
}

// Whether the next slice continues with a destination where the current one ends.
static bool goes_on(const struct xco_core *core, uint16_t host) {
    const struct xco_order *next = &core->next;
    bool opens = next->mode == XCO_OPEN || (next->mode != XCO_CLOSED && permit_of(next, host));
    return next->known && opens && next->end_ns > core->current.end_ns &&
           next->start_ns <= core->current.end_ns + core->config.guard_ns;
}

int64_t xco_order_closes(const struct xco_core *core, const struct xco_destination *destination) {
    const struct xco_order *current = &core->current;
    if (!current->known || current->end_ns == XCO_NEVER || goes_on(core, destination->host)) {
        return XCO_NEVER;
    }
    return current->mode == XCO_SLICE ? current->end_ns - core->config.guard_ns : current->end_ns;
}

bool xco_order_in_slice(const struct xco_core *core, int64_t now_ns) {
    const struct xco_order *current = &core->current;
    return !core->fell_back && current->known && current->mode == XCO_SLICE && !current->given_up &&
           now_ns < current->end_ns;
}

// Returns how many destinations with a gate are behind a link.
static unsigned behind(const struct xco_core *core, uint16_t link) {
    unsigned count = 0;
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *other = &core->destinations[gate];
        for (unsigned i = 0; other->used && i < other->way.count; i++) {
            count += other->way.links[i] == link;
        }
    }
    return count;
}

// Destinations divide the safe rate of each link that they share, and of no other.
uint64_t xco_order_safe(const struct xco_core *core, const struct xco_destination *destination) {
    uint64_t rate = core->config.line_bps;
    const struct xco_way *way = &destination->way;
    for (unsigned i = 0; i < way->count && !core->config.fallback_open; i++) {
        unsigned sharing = behind(core, way->links[i]);
        uint64_t share = way->shares_bps[i] / (sharing > 0 ? sharing : 1);
        rate = share < rate ? share : rate;
    }
    return rate;
}

// A sender at exactly the bottleneck's rate never drains its queue. 0 would close the gate.
static uint64_t paced(const struct xco_core *core, uint64_t rate_bps) {
    uint64_t rate = rate_bps / 1000 * core->config.pace_ppm / 1000;
    return rate > SLOWEST_BPS ? rate : SLOWEST_BPS;
}

static uint64_t permitted(const struct xco_core *core, const struct xco_destination *destination) {
    uint64_t line = core->config.line_bps;
    if (core->current.mode == XCO_OPEN) {
        return paced(core, line);
    }
    const struct xco_permit *permit = permit_of(&core->current, destination->host);
    if (core->current.mode == XCO_CLOSED || permit == NULL) {
        return 0;
    }
    bool most = permit->rate_bps == 0 || permit->rate_bps > line;
    return paced(core, most ? line : permit->rate_bps);
}

// Returns what the current order permits to a destination; 0: nothing.
static uint64_t ordered(const struct xco_core *core, const struct xco_destination *destination,
                        int64_t now_ns) {
    if (!core->current.known || core->current.given_up ||
        now_ns >= xco_order_closes(core, destination)) {
        return 0;
    }
    return permitted(core, destination);
}

// Returns what other hosts offer to a host without a controller; 0: nothing.
static uint64_t allowed(const struct xco_core *core, const struct xco_destination *destination) {
    return destination->allowed_bps > 0 ? paced(core, destination->allowed_bps) : 0;
}

uint64_t xco_order_rate(const struct xco_core *core, const struct xco_destination *destination,
                        int64_t now_ns) {
    if (destination->host == XCO_CONTROLLER) {
        return paced(core, core->config.outside_bps);
    }
    uint64_t rate =
        core->fell_back ? allowed(core, destination) : ordered(core, destination, now_ns);
    bool safe = rate == 0 && (core->fell_back || core->config.paced);
    return safe ? paced(core, xco_order_safe(core, destination)) : rate;
}
