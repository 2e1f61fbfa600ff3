// Decisions of a local coordinator: the commands that follow from its state, and the next alarm.
#include "coordinator/engine/decide.h"

#include "coordinator/engine/drain.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/orders.h"

#define CHANGE 8 // a weight or guarantee is news if it changes by more than this part

struct list {
    struct xco_command *commands;
    size_t count;
};

static void put(struct list *list, enum xco_command_kind kind) {
    list->commands[list->count++] = (struct xco_command){.kind = kind};
}

// What hosts offered before the controller was heard is out of date.
static void forget_offers(struct xco_core *core) {
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        core->destinations[gate].allowed_bps = 0;
    }
}

// Falls back after too long a silence, and recovers at the first directive after it.
static void judge_silence(struct xco_core *core, int64_t now_ns, struct list *list) {
    bool silent = xco_core_silent(core, now_ns);
    if (silent && !core->fell_back) {
        core->fell_back = core->report_wanted = true;
        core->joined = false;
        core->current.known = core->next.known = false;
        core->counts.fallbacks++;
        forget_offers(core);
        put(list, XCO_SAY_FALLBACK);
    } else if (!silent && core->fell_back) {
        core->fell_back = false;
        core->report_wanted = true;
        put(list, XCO_SAY_CONTROLLED);
    }
}

// Whether every destination of the running slice has been empty for the hysteresis (paper, section
// 3.1: distributed work conservation).
static bool is_unused(const struct xco_core *core, int64_t now_ns) {
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        bool open = destination->used && xco_order_rate(core, destination, now_ns) > 0;
        if (open && (destination->empty_since_ns == XCO_NEVER ||
                     now_ns - destination->empty_since_ns < core->config.hysteresis_ns)) {
            return false;
        }
    }
    return true;
}

static void judge_slice(struct xco_core *core, int64_t now_ns) {
    bool early = now_ns < core->current.end_ns - core->config.guard_ns;
    bool begun = now_ns >= core->current.start_ns; // gates are set in advance
    if (!begun || !xco_order_in_slice(core, now_ns) || core->current.leaving) {
        return;
    }
    if (early && is_unused(core, now_ns)) {
        core->current.given_up = true;
        core->gave_up_sequence = core->current.sequence;
        core->counts.given_up++;
        core->report_wanted = true;
        xco_drain_note_short(core, now_ns);
    } else {
        xco_drain_judge(core);
    }
}

// Whether a slice sets the times of a gate.
static bool is_sliced(const struct xco_core *core, const struct xco_destination *destination) {
    return !core->fell_back && core->current.mode == XCO_SLICE &&
           destination->host != XCO_CONTROLLER;
}

// Whether a gate is set as it should be. A gate with a renewed slice keeps its tokens until the
// next slice begins: every setting fills its bucket, and a sole sender would exceed its rate.
static bool stands(const struct xco_core *core, const struct xco_destination *destination,
                   uint64_t rate, int64_t closes) {
    bool renewed = closes == XCO_NEVER && rate > 0 && is_sliced(core, destination);
    return rate == destination->applied_bps && (renewed || closes == destination->closes_ns);
}

static void set_gates(struct xco_core *core, int64_t now_ns, struct list *list) {
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        struct xco_destination *destination = &core->destinations[gate];
        uint64_t rate = destination->used ? xco_order_rate(core, destination, now_ns) : 0;
        int64_t closes = rate > 0 && is_sliced(core, destination)
                             ? xco_order_closes(core, destination)
                             : XCO_NEVER;
        if (!destination->used || stands(core, destination, rate, closes)) {
            continue;
        }
        if (rate == 0 && core->current.leaving) {
            destination->backlog_bytes = 0; // arrivals since then are seen immediately
            destination->look_ns = now_ns;
        }
        if (rate == 0 && destination->reported && destination->backlog_bytes == 0) {
            core->report_wanted = true; // its slice ended just as its backlog was sent
        }
        if (destination->applied_bps == 0) {
            xco_drain_begin(core, destination, now_ns);
            destination->empty_since_ns = XCO_NEVER;
            destination->look_ns = now_ns + core->config.poll_open_ns;
        }
        const struct xco_opening opening = {
            .rate_bps = rate,
            .lasts_ns = closes == XCO_NEVER ? 0 : closes - now_ns,
            .goes_on = rate == destination->applied_bps,
            .lasted = destination->lasts,
        };
        destination->applied_bps = rate;
        destination->closes_ns = closes;
        destination->lasts = xco_lasts(&opening);
        list->commands[list->count++] = (struct xco_command){XCO_SET_GATE, gate, opening};
    }
}

static bool differs(uint16_t a, uint16_t b) {
    uint16_t more = a > b ? a : b, less = a > b ? b : a;
    return (more - less) * CHANGE > more;
}

// Whether the VMs that send to a destination count differently by more than a little.
static bool has_changed(const struct xco_destination *destination) {
    return differs(destination->weight, destination->reported_weight) ||
           differs(destination->guarantee_mbps, destination->reported_mbps);
}

// Whether a destination has become backlogged, or fast without a backlog, since the last report, or
// is either, and other VMs send to it. One that only emptied within its own slice is reported when
// that is given up, or by the heartbeat.
static bool has_news(const struct xco_core *core) {
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        bool waits = destination->used && xco_drain_waits(core, destination);
        bool known = destination->reported || destination->reported_fast;
        bool fast = xco_core_is_fast(core, destination);
        if ((waits && !destination->reported) || (fast && !known) ||
            ((waits || fast) && has_changed(destination))) {
            return true;
        }
    }
    return false;
}

static void judge_report(struct xco_core *core, int64_t now_ns, struct list *list) {
    int64_t since = now_ns - core->report_ns;
    bool news = has_news(core) && since >= core->config.report_gap_ns;
    if (!news && !core->report_wanted && since < core->config.heartbeat_ns) {
        return;
    }
    core->report_wanted = false;
    core->report_ns = now_ns;
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        struct xco_destination *destination = &core->destinations[gate];
        destination->reported = destination->used && xco_drain_waits(core, destination);
        destination->reported_fast = xco_core_is_fast(core, destination);
        destination->reported_weight = destination->weight;
        destination->reported_mbps = destination->guarantee_mbps;
    }
    if (core->refused == XCO_JOINED) {
        put(list, XCO_SEND_REPORT);
    }
}

size_t xco_core_decide(struct xco_core *core, int64_t now_ns,
                       struct xco_command commands[XCO_COMMANDS]) {
    struct list list = {.commands = commands};
    xco_order_promote(core, now_ns);
    judge_silence(core, now_ns, &list);
    judge_slice(core, now_ns);
    set_gates(core, now_ns, &list);
    if (!core->joined && now_ns - core->hello_ns >= core->config.hello_ns) {
        core->hello_ns = now_ns;
        put(&list, XCO_SEND_HELLO);
    }
    judge_report(core, now_ns, &list);
    return list.count;
}

static void earlier(struct xco_alarm *alarm, int64_t at_ns, bool precise) {
    if (at_ns < alarm->at_ns) {
        *alarm = (struct xco_alarm){at_ns, precise};
    }
}

int64_t xco_core_moves(const struct xco_core *core, int64_t now_ns) {
    struct xco_alarm moves = {XCO_NEVER, true};
    if (core->next.known) {
        bool sliced = core->next.mode == XCO_SLICE;
        earlier(&moves, core->next.start_ns - (sliced ? core->advance_ns : 0), true);
    }
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        const struct xco_destination *destination = &core->destinations[gate];
        int64_t closes = xco_order_closes(core, destination);
        if (destination->used && destination->applied_bps > 0 && !core->fell_back &&
            closes > now_ns) {
            earlier(&moves, closes, true);
        }
    }
    return moves.at_ns;
}

struct xco_alarm xco_core_alarm(const struct xco_core *core, int64_t now_ns) {
    struct xco_alarm alarm = {core->report_ns + core->config.heartbeat_ns, false};
    if (has_news(core)) {
        earlier(&alarm, core->report_ns + core->config.report_gap_ns, false);
    }
    if (!core->joined) {
        earlier(&alarm, core->hello_ns + core->config.hello_ns, false);
    }
    if (!core->fell_back) {
        earlier(&alarm, core->valid_ns + core->config.silence_ns, false);
    }
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        if (core->destinations[gate].used) {
            earlier(&alarm, core->destinations[gate].look_ns, false);
        }
    }
    earlier(&alarm, xco_core_moves(core, now_ns), true);
    return alarm;
}
