// Early release of slices: destinations with a small backlog announce at the start when they end.
#include "coordinator/engine/drain.h"

#define SHORT_TURNS 2u // in a row: enables early release for a destination

// Returns the only destination of the running slice, or NULL.
static struct xco_destination *served(struct xco_core *core) {
    const struct xco_order *order = &core->current;
    bool one = order->known && order->mode == XCO_SLICE && order->count == 1;
    int gate = one ? xco_core_find(core, order->permits[0].destination) : -1;
    return gate < 0 ? NULL : &core->destinations[gate];
}

void xco_drain_begin(const struct xco_core *core, struct xco_destination *destination,
                     int64_t now_ns) {
    const struct xco_order *order = &core->current;
    bool early = order->known && order->mode == XCO_SLICE && order->start_ns > now_ns;
    destination->opened_ns = early ? order->start_ns : now_ns;
    destination->opened_bytes = destination->sent_bytes;
}

// Returns how long a link at the gate's rate carries so many bytes.
static int64_t carrying_ns(const struct xco_destination *destination, uint64_t bytes) {
    return (int64_t)((double)bytes * 8e9 / (double)destination->applied_bps);
}

// Returns when such a link has carried what the destination has sent since its gate opened, and its
// backlog: the first packets leave the host in a burst.
static int64_t carried_ns(const struct xco_destination *destination) {
    uint64_t sent = destination->sent_bytes - destination->opened_bytes;
    int64_t all =
        destination->opened_ns + carrying_ns(destination, sent + destination->backlog_bytes);
    int64_t rest = destination->looked_ns + carrying_ns(destination, destination->backlog_bytes);
    return all > rest ? all : rest; // it may have been idle in between
}

void xco_drain_note_short(struct xco_core *core, int64_t now_ns) {
    struct xco_destination *destination = served(core);
    core->free_ns = 0;
    if (destination == NULL) {
        return;
    }
    destination->short_turns += destination->short_turns < SHORT_TURNS;
    int64_t carried = destination->applied_bps > 0 ? carried_ns(destination) : 0;
    if (carried > now_ns) {
        core->free_ns = (uint64_t)(carried + core->current.shift_ns);
    }
}

void xco_drain_judge_end(struct xco_core *core) {
    struct xco_destination *destination = served(core);
    bool whole = !core->current.given_up && !core->current.leaving;
    if (destination != NULL && whole && destination->backlog_bytes > 0) {
        destination->short_turns = 0;
    }
}

void xco_drain_judge(struct xco_core *core) {
    struct xco_order *order = &core->current;
    struct xco_destination *destination = served(core);
    if (destination == NULL || destination->short_turns < SHORT_TURNS ||
        destination->applied_bps == 0 || destination->looked_ns <= destination->opened_ns ||
        destination->backlog_bytes == 0) {
        return;
    }
    int64_t end = carried_ns(destination) + core->config.hysteresis_ns + core->config.guard_ns;
    if (end < order->end_ns) {
        order->end_ns = end;
        order->leaving = true;
        destination->leaves_bytes = destination->sent_bytes + destination->backlog_bytes;
        core->gave_up_sequence = order->sequence;
        core->free_ns = (uint64_t)(end + order->shift_ns);
        core->counts.given_up++;
        core->report_wanted = true;
    }
}

void xco_drain_judge_rest(struct xco_destination *destination) {
    if (destination->applied_bps == 0 && destination->leaves_bytes != 0) {
        uint64_t all = destination->sent_bytes + destination->backlog_bytes;
        uint64_t came = all - destination->leaves_bytes;
        if (2 * came >= destination->leaves_bytes - destination->opened_bytes) {
            destination->short_turns = 0;
        }
        destination->leaves_bytes = 0;
    }
}

bool xco_drain_waits(const struct xco_core *core, const struct xco_destination *destination) {
    bool leaves = !core->fell_back && core->current.known && core->current.leaving &&
                  destination->applied_bps > 0 &&
                  destination->host == core->current.permits[0].destination;
    return destination->backlog_bytes > 0 && !leaves;
}
