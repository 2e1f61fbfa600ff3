// Events of a local coordinator, and its reports.
#include "coordinator/engine/engine.h"

#include <string.h>

#include "coordinator/engine/drain.h"
#include "coordinator/engine/orders.h"

#define RATE_OVER_NS 5000000 // shortest interval for measuring a rate
#define PAUSE_NS 50000000    // longest: a sender that is silent for this long has stopped
#define PAUSE_BITS 36336u    // and one that would have sent three full frames
#define SHORTEST_SILENCE_NS 1000000
#define LONGEST_SILENCE_NS 60000000000
#define UNSLICED_NS 10000000000 // after a refused slice, directives are not obeyed for this long
#define FAST_SHARE 20 // of the line: the controller counts a sender as active from this rate on

void xco_core_begin(struct xco_core *core, const struct xco_core_config *config, int64_t now_ns) {
    memset(core, 0, sizeof *core);
    core->config = *config;
    core->fell_back = true;
    core->began_ns = core->valid_ns = core->report_ns = now_ns;
    core->hello_ns = now_ns - config->hello_ns;
    core->sliced_ns = XCO_NEVER;
}

// Whether a directive is from a controller that grants slices, where gates only pace. Directives
// between its slices rely on them, so they are refused too.
static bool is_sliced(struct xco_core *core, int64_t now_ns,
                      const struct xco_directive *directive) {
    if (core->config.paced && directive->mode == XCO_SLICE) {
        core->sliced_ns = now_ns;
    }
    return core->sliced_ns != XCO_NEVER && now_ns - core->sliced_ns < UNSLICED_NS;
}

// Another controller, or a restarted one: the old one's times and sequences are void.
static void note_epoch(struct xco_core *core, uint64_t epoch) {
    if (epoch != core->epoch) {
        core->epoch = epoch;
        core->refused = XCO_JOINED;
        core->heard_sequence = core->gave_up_sequence = core->free_ns = 0;
        core->current.sequence = 0; // a slice of the old one cannot be given up to the new one
        core->next.known = false;
        xco_clock_forget(&core->clock);
    }
}

static void learn(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                  uint64_t sent_ns, uint64_t received_ns) {
    if (sent_ns != 0) {
        xco_clock_learn(&core->clock, &(struct xco_exchange){
                                          .sent_ns = (int64_t)sent_ns,
                                          .received_ns = (int64_t)received_ns,
                                          .answered_ns = (int64_t)header->sent_ns,
                                          .heard_ns = now_ns,
                                      });
    }
}

bool xco_core_answers(const struct xco_core *core, int64_t now_ns,
                      const struct xco_message *message) {
    bool directs = message->header.type == XCO_DIRECTIVE;
    uint64_t echo_ns =
        directs ? message->body.directive.echo_sent_ns : message->body.welcome.echo_sent_ns;
    if (echo_ns == 0) {
        return directs && core->clock.count == 0;
    }
    return echo_ns >= (uint64_t)core->began_ns && echo_ns <= (uint64_t)now_ns;
}

void xco_core_welcome(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                      const struct xco_welcome *welcome) {
    if (welcome->to != core->config.host) {
        core->counts.misdirected++;
        return;
    }
    note_epoch(core, header->epoch);
    learn(core, now_ns, header, welcome->echo_sent_ns, welcome->echo_received_ns);
    bool was_refused = core->refused != XCO_JOINED;
    core->joined = welcome->status == XCO_JOINED;
    core->strategy = welcome->strategy;
    if (welcome->status != XCO_HELLO_FIRST) {
        core->refused = welcome->status;
    }
    core->counts.welcomes += core->joined;
    core->counts.refusals += !core->joined;
    if (core->joined && welcome->silence_ns >= SHORTEST_SILENCE_NS &&
        welcome->silence_ns <= LONGEST_SILENCE_NS) {
        core->config.silence_ns = (int64_t)welcome->silence_ns;
    }
    if (welcome->status == XCO_HELLO_FIRST && !was_refused) { // a refused host asks again later
        core->hello_ns = now_ns - core->config.hello_ns;
    }
    core->report_wanted = core->report_wanted || core->joined;
}

void xco_core_directive(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                        const struct xco_directive *directive) {
    if (directive->to != core->config.host) {
        core->counts.misdirected++;
        return;
    }
    note_epoch(core, header->epoch);
    learn(core, now_ns, header, directive->echo_sent_ns, directive->echo_received_ns);
    if (is_sliced(core, now_ns, directive)) {
        core->counts.unsliced++; // ignored: silence leads to safe shares
        return;
    }
    struct xco_order order;
    if (!xco_order_of(&order, header, directive, xco_clock_best(&core->clock, now_ns))) {
        core->counts.unplaced++;
        core->report_wanted = true; // the answer will contain the controller's time
        return;
    }
    core->heard_sequence = header->sequence;
    core->counts.directives++;
    core->valid_ns = now_ns;
    core->joined = true;
    xco_order_take(core, now_ns, &order);
}

bool xco_core_has_room(const struct xco_core *core) {
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        if (!core->destinations[gate].used) {
            return true;
        }
    }
    return false;
}

int xco_core_add(struct xco_core *core, int64_t now_ns, uint16_t host, const struct xco_way *way) {
    unsigned gate = host == XCO_CONTROLLER ? XCO_OUTSIDE : 0;
    while (gate < XCO_OUTSIDE && core->destinations[gate].used) {
        gate++;
    }
    if (gate == XCO_OUTSIDE && host != XCO_CONTROLLER) {
        return -1;
    }
    core->destinations[gate] = (struct xco_destination){
        .used = true,
        .host = host,
        .way = *way,
        .closes_ns = XCO_NEVER,
        .empty_since_ns = XCO_NEVER,
        .look_ns = now_ns,
        .rate_since_ns = now_ns,
    };
    return (int)gate;
}

void xco_core_remove(struct xco_core *core, unsigned gate) {
    core->report_wanted = core->report_wanted || core->destinations[gate].reported;
    core->destinations[gate].used = false;
}

void xco_core_stir(struct xco_core *core, int64_t now_ns, unsigned gate) {
    core->destinations[gate].look_ns = now_ns;
}

void xco_core_lost(struct xco_core *core) {
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        core->destinations[gate].backlog_bytes = 0;
        core->destinations[gate].rate_bps = 0;
    }
    core->lost = core->report_wanted = true;
}

void xco_core_remade(struct xco_core *core) {
    core->report_wanted = core->report_wanted || core->lost;
    core->lost = false;
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        core->destinations[gate].applied_bps = 0;
        core->destinations[gate].lasts = false;
        core->destinations[gate].closes_ns = XCO_NEVER;
        core->destinations[gate].sent_bytes = core->destinations[gate].rate_since_bytes = 0;
        core->destinations[gate].leaves_bytes = 0;
    }
}

bool xco_core_silent(const struct xco_core *core, int64_t now_ns) {
    return core->counts.directives == 0 || now_ns - core->valid_ns >= core->config.silence_ns;
}

// Whether nothing was sent only because the next frame of a slow sender is not due yet.
static bool pauses(const struct xco_destination *destination, uint64_t bytes, int64_t over_ns) {
    return bytes == 0 && over_ns < PAUSE_NS &&
           destination->rate_bps / 1000 * (uint64_t)(over_ns / 1000) < PAUSE_BITS * UINT64_C(1000);
}

static void measure(struct xco_destination *destination, int64_t now_ns) {
    const int64_t over = now_ns - destination->rate_since_ns;
    const uint64_t bytes = destination->sent_bytes - destination->rate_since_bytes;
    if (over >= RATE_OVER_NS && !pauses(destination, bytes, over)) {
        destination->rate_bps = bytes * 8 * 1000000 / (uint64_t)(over / 1000);
        destination->rate_since_ns = now_ns;
        destination->rate_since_bytes = destination->sent_bytes;
    }
}

// Returns when to look again: an open slice's gate cannot be empty before its backlog has left.
static int64_t next_look(const struct xco_core *core, const struct xco_destination *destination,
                         int64_t now_ns) {
    int64_t shortest = core->config.poll_open_ns, longest = core->config.poll_closed_ns;
    bool decided = destination->host != XCO_CONTROLLER;
    bool stands =
        destination->applied_bps == 0 && destination->reported && destination->backlog_bytes > 0;
    if (!decided || stands) { // nothing follows from it until its gate changes
        return now_ns + core->config.heartbeat_ns;
    }
    if (!xco_order_in_slice(core, now_ns) || destination->applied_bps == 0) {
        return now_ns + longest;
    }
    uint64_t leaves = (uint64_t)destination->backlog_bytes * 8000000000u / destination->applied_bps;
    if (leaves > (uint64_t)longest) {
        return now_ns + longest;
    }
    return now_ns + ((int64_t)leaves > shortest ? (int64_t)leaves : shortest);
}

void xco_core_look(struct xco_core *core, int64_t now_ns, unsigned gate, uint32_t backlog_bytes,
                   uint64_t sent_bytes) {
    struct xco_destination *destination = &core->destinations[gate];
    destination->backlog_bytes = backlog_bytes;
    destination->sent_bytes = sent_bytes;
    destination->looked_ns = now_ns;
    if (backlog_bytes > 0) {
        destination->empty_since_ns = XCO_NEVER;
    } else if (destination->empty_since_ns == XCO_NEVER) {
        destination->empty_since_ns = now_ns;
    }
    xco_drain_judge_rest(destination);
    measure(destination, now_ns);
    destination->look_ns = next_look(core, destination, now_ns);
}

bool xco_core_is_fast(const struct xco_core *core, const struct xco_destination *destination) {
    return destination->used && destination->rate_bps >= core->config.line_bps / FAST_SHARE;
}

bool xco_core_due(const struct xco_core *core, int64_t now_ns, unsigned gate) {
    return core->destinations[gate].used && core->destinations[gate].look_ns <= now_ns;
}

void xco_core_report(const struct xco_core *core, struct xco_report *report) {
    memset(report, 0, sizeof *report);
    report->flags = (uint16_t)((core->fell_back || core->lost ? XCO_FLAG_FELL_BACK : 0) |
                               (core->more ? XCO_FLAG_MORE : 0));
    report->directive_sequence = core->heard_sequence;
    report->gave_up_sequence = core->gave_up_sequence;
    report->free_ns = core->free_ns;
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        uint64_t rate_kbps = destination->rate_bps / 1000;
        bool waits = xco_drain_waits(core, destination);
        if (destination->used && (waits || rate_kbps > 0)) {
            report->entries[report->count++] = (struct xco_waiting){
                .destination = destination->host,
                .backlog_bytes = waits ? destination->backlog_bytes : 0,
                .rate_kbps = rate_kbps < UINT32_MAX ? (uint32_t)rate_kbps : UINT32_MAX,
                .sent_bytes = destination->sent_bytes,
                .weight = destination->weight,
                .guarantee_mbps = destination->guarantee_mbps,
            };
        }
    }
}
