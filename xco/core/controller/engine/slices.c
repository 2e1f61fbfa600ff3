// Timeslices: passes the three events to the scheduler, and turns its grants into directives.
//
// The end of a slice is decided `lead_ns` in advance, so that the next sender knows its start when
// the last one ends. A turn starts when each link of its path has room for it next to ended turns
// that still send (controller/engine/calendar.h), a guard time after those of others.
#include "controller/engine/slices.h"

#include <string.h>

#include "controller/engine/fallback.h"
#include "controller/engine/lone.h"
#include "controller/engine/outbox.h"
#include "controller/engine/yield.h"

// The scheduler's clock: the latest instant of any decision.
static uint64_t schedule_clock(struct xco_control *core, uint64_t at_ns) {
    core->clock_ns = at_ns > core->clock_ns ? at_ns : core->clock_ns;
    return core->clock_ns;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// Extends a host's turn on its links to an instant.
static void note_rest(struct xco_control *core, uint32_t host, const struct xco_turn *turn,
                      uint64_t until_ns) {
    const struct xco_rest rest = {.until_ns = until_ns, .rate_bps = turn->rate_bps, .host = host};
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, host, turn->destination, path);
    for (size_t i = 0; i < length; i++) {
        core->failed = !xco_calendar_note(&core->calendar, path[i], rest) || core->failed;
    }
}

// Notes at which rate a host's turn takes over from its rests on the links of a path.
static void renew_rests(struct xco_control *core, uint32_t host, uint32_t destination,
                        uint64_t rate_bps) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, host, destination, path);
    for (size_t i = 0; i < length; i++) {
        xco_calendar_renew(&core->calendar, path[i], host, rate_bps);
    }
}

// Ends a host's turn at `stop_ns`; it occupies its links until `free_ns` (0: no longer).
static void stop_turn(struct xco_control *core, uint32_t host, uint64_t stop_ns, uint64_t free_ns) {
    struct xco_peer *peer = core->peers[host];
    struct xco_turn *turn = &peer->turn;
    if (turn->destination == XCO_NONE) {
        return;
    }
    xco_lone_end(core, host);
    renew_rests(core, host, turn->destination, 0);
    if (free_ns != 0) {
        note_rest(core, host, turn, free_ns);
    }
    if (stop_ns < turn->end_ns && turn->end_ns > turn->start_ns) {
        const uint64_t from = stop_ns > turn->start_ns ? stop_ns : turn->start_ns;
        peer->granted_ns -= turn->end_ns - from;
    }
    peer->stops_ns = stop_ns;
    turn->destination = XCO_NONE;
}

// Returns what the scheduler's grants and other promises leave of a link.
static uint64_t spare_of(const struct xco_control *core, uint32_t link) {
    const uint64_t capacity = xco_network_capacity(&core->network, link);
    const uint64_t used =
        xco_schedule_used_bps(core->schedule, link) + core->extras.links[link].rate_bps;
    return capacity > used ? capacity - used : 0;
}

// Returns the first instant from `at_ns` on at which the whole path has room for a host's new turn.
static uint64_t path_free(struct xco_control *core, const struct xco_grant *grant, uint64_t now_ns,
                          uint64_t at_ns) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = xco_network_path(&core->network, grant->host, grant->destination, path);
    struct xco_wish wish = {grant->host, at_ns, 0, core->settings.guard_ns};
    const uint64_t over_ns = now_ns > wish.guard_ns ? now_ns - wish.guard_ns : 0;
    for (size_t i = 0; i < length; i++) {
        xco_calendar_forget(&core->calendar, path[i], over_ns);
        wish.spare_bps = spare_of(core, path[i]);
        wish.at_ns = xco_calendar_start(&core->calendar, path[i], &wish);
    }
    return wish.at_ns;
}

static void start_turn(struct xco_control *core, const struct xco_grant *grant, uint64_t now_ns,
                       uint64_t at_ns, uint64_t before_sequence) {
    struct xco_peer *peer = core->peers[grant->host];
    const uint64_t start = path_free(core, grant, now_ns, at_ns);
    peer->turn = (struct xco_turn){
        .destination = grant->destination,
        .rate_bps = grant->rate_bps,
        .told_bps = xco_fallen_told(core, grant),
        .start_ns = start,
        .end_ns = start + core->settings.slice_ns,
        .before_sequence = before_sequence,
        .stamp = ++core->stamp,
    };
    peer->slices++;
    peer->granted_ns += core->settings.slice_ns;
    core->counters.slices_started++;
    xco_control_timer(core, peer->turn.end_ns - core->settings.lead_ns, XCO_TIMER_SLICE,
                      grant->host, peer->turn.stamp);
    if (start > at_ns) {
        xco_control_cut(core, grant->host, now_ns, later(at_ns, peer->stops_ns));
    }
    const struct xco_directive plan = {
        .mode = XCO_SLICE,
        .count = 1,
        .start_ns = start,
        .end_ns = peer->turn.end_ns,
        .entries = {{(uint16_t)grant->destination, peer->turn.told_bps}},
    };
    xco_control_plan(core, grant->host, &plan, now_ns);
}

static void close_host(struct xco_control *core, uint32_t host, uint64_t now_ns, uint64_t at_ns) {
    const struct xco_directive plan = {.mode = XCO_CLOSED, .start_ns = at_ns};
    xco_control_plan(core, host, &plan, now_ns);
}

// Returns the first instant by which a host has heard a message sent now.
static uint64_t heard_by(const struct xco_control *core, uint64_t now_ns) {
    return now_ns + core->settings.lead_ns;
}

// Takes away a host's turn, if any: the scheduler has preempted it.
static void preempt(struct xco_control *core, uint32_t host, uint64_t at_ns) {
    const struct xco_turn *turn = &core->peers[host]->turn;
    if (turn->destination != XCO_NONE) {
        core->counters.slices_preempted++;
        const uint64_t stop = turn->end_ns < at_ns ? turn->end_ns : at_ns;
        stop_turn(core, host, stop, stop);
    }
}

// Takes what new turns need from rates outside turns; plans what turns leave later.
static void make_room(struct xco_control *core, int changed, uint64_t now_ns, uint64_t at_ns) {
    for (int i = 0; i < changed; i++) {
        if (core->grants[i].destination != XCO_NONE) {
            xco_yield(core, &core->grants[i], now_ns, at_ns);
        }
    }
    xco_control_dirty(core, at_ns);
}

// Applies the changes of one event, from `at_ns` on. The turn of the event's host has been stopped
// before; `renews` is its sequence if the turn continues without a gap.
static void carry_out(struct xco_control *core, int changed, uint64_t now_ns, uint64_t at_ns,
                      uint32_t trigger, uint64_t renews) {
    if (changed < 0) {
        core->failed = true;
        return;
    }
    const uint64_t heard = heard_by(core, now_ns);
    const uint64_t stop = at_ns > heard ? at_ns : heard; // for a turn that is taken away
    for (int i = 0; i < changed; i++) {
        preempt(core, core->grants[i].host, stop);
    }
    for (int i = 0; i < changed; i++) { // all, before giving the first its start
        const struct xco_grant *grant = &core->grants[i];
        if (grant->destination != XCO_NONE) {
            renew_rests(core, grant->host, grant->destination, grant->rate_bps);
        }
    }
    for (int i = 0; i < changed; i++) {
        const struct xco_grant *grant = &core->grants[i];
        if (grant->destination != XCO_NONE) {
            start_turn(core, grant, now_ns, at_ns, grant->host == trigger ? renews : 0);
        } else if (grant->host != trigger) {
            close_host(core, grant->host, now_ns, stop);
        }
    }
    if (changed > 0 && core->settings.strategy == XCO_HYBRID) {
        make_room(core, changed, now_ns, at_ns);
    }
}

static bool is_waiting(const struct xco_report *report, uint32_t destination) {
    for (size_t i = 0; i < report->count; i++) {
        if (report->entries[i].destination == destination) {
            return report->entries[i].backlog_bytes > 0;
        }
    }
    return false;
}

// Whether the report gives up the host's turn, or the turn that this one renews.
static bool gives_up(const struct xco_peer *peer, uint64_t now_ns) {
    const struct xco_turn *turn = &peer->turn;
    const uint64_t sequence = peer->report.gave_up_sequence;
    if (turn->destination == XCO_NONE || sequence == 0) {
        return false;
    }
    if (turn->first_sequence != 0 && sequence >= turn->first_sequence) {
        return true;
    }
    return turn->before_sequence != 0 && sequence >= turn->before_sequence &&
           now_ns < turn->start_ns && !is_waiting(&peer->report, turn->destination);
}

static bool forget_offer(struct xco_peer *peer, uint32_t destination) {
    for (size_t i = 0; i < peer->offered_count; i++) {
        if (peer->offered[i] == destination) {
            peer->offered[i] = peer->offered[--peer->offered_count];
            return true;
        }
    }
    return false;
}

// Returns until when a host that gave up may still send in its turn: it gave up the one before, and
// this one begins before it hears that it must not.
static uint64_t may_send_until(const struct xco_control *core, const struct xco_turn *turn,
                               uint64_t now_ns) {
    const uint64_t heard = heard_by(core, now_ns);
    return turn->first_sequence != 0 && turn->start_ns > now_ns && turn->start_ns < heard ? heard
                                                                                          : 0;
}

// Returns when the host that gave up its turn stops sending: now, or when its backlog has been
// sent.
static uint64_t done_at(const struct xco_peer *peer, uint64_t now_ns) {
    const uint64_t said = peer->report.free_ns, granted = peer->turn.end_ns;
    return later(said < granted ? said : granted, now_ns);
}

// Ends a running turn when, by its host's report, the backlog will have been sent.
static void shorten(struct xco_control *core, uint32_t host, uint64_t done_ns) {
    struct xco_peer *peer = core->peers[host];
    struct xco_turn *turn = &peer->turn;
    if (done_ns < turn->end_ns) {
        core->counters.events_gave_up++;
        peer->granted_ns -= turn->end_ns - done_ns;
        turn->end_ns = peer->plan.end_ns = done_ns;
        turn->stamp = ++core->stamp;
        xco_control_timer(core, done_ns - core->settings.lead_ns, XCO_TIMER_SLICE, host,
                          turn->stamp);
    }
}

// Event 2: work conservation. The links are free immediately; the host has no backlog. An announced
// turn that has not begun is withdrawn.
static void give_up(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    const uint64_t done = done_at(peer, now_ns);
    if (done > now_ns && peer->plan.start_ns <= now_ns) {
        shorten(core, host, done);
        return;
    }
    core->counters.events_gave_up++;
    if (forget_offer(peer, peer->turn.destination)) {
        xco_lone_want_less(core, host, peer->turn.destination);
    }
    stop_turn(core, host, now_ns, may_send_until(core, &peer->turn, now_ns));
    if (peer->plan.start_ns > now_ns) {
        close_host(core, host, now_ns, now_ns);
    } else {
        peer->plan =
            (struct xco_directive){.mode = XCO_CLOSED, .to = (uint16_t)host, .start_ns = now_ns};
    }
    const int changed =
        xco_schedule_gave_up(core->schedule, schedule_clock(core, now_ns), host, core->grants);
    carry_out(core, changed, now_ns, now_ns, host, 0);
}

// Writes the destinations of the host's backlog; omits invalid ones.
static size_t backlog_group(struct xco_control *core, uint32_t host,
                            uint32_t group[XCO_ENTRIES_MAX]) {
    const struct xco_report *report = &core->peers[host]->report;
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct xco_waiting *entry = &report->entries[i];
        if (entry->destination >= core->network.hosts || entry->destination == host) {
            core->counters.wrong_destinations++;
        } else if (entry->backlog_bytes > 0) {
            group[count++] = entry->destination;
        }
    }
    return count;
}

static bool contains(const uint32_t *group, size_t count, uint32_t destination) {
    for (size_t i = 0; i < count; i++) {
        if (group[i] == destination) {
            return true;
        }
    }
    return false;
}

static bool is_offered(const struct xco_peer *peer, const uint32_t *group, size_t count) {
    if (count != peer->offered_count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!contains(peer->offered, peer->offered_count, group[i])) {
            return false;
        }
    }
    return true;
}

// Event 3: the backlog group, if it differs from the scheduler's.
static void offer(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    uint32_t group[XCO_ENTRIES_MAX];
    const size_t count = backlog_group(core, host, group);
    if (is_offered(peer, group, count)) {
        return;
    }
    xco_lone_want(core, host, group, count);
    xco_lone_yield(core, now_ns, host);
    core->counters.events_backlogged++;
    const int changed = xco_schedule_backlogged(core->schedule, schedule_clock(core, now_ns), host,
                                                group, count, core->grants);
    carry_out(core, changed, now_ns, now_ns, XCO_NONE, 0);
}

// Starts a turn earlier, if its links are free by now.
static void advance(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    struct xco_turn *turn = &peer->turn;
    const uint64_t heard = heard_by(core, now_ns);
    if (turn->destination == XCO_NONE || turn->start_ns <= heard ||
        peer->plan.start_ns != turn->start_ns || peer->cut_due) {
        return;
    }
    const struct xco_grant grant = {host, turn->destination, turn->rate_bps};
    const uint64_t start = path_free(core, &grant, now_ns, later(heard, peer->stops_ns));
    if (start >= turn->start_ns) {
        return;
    }
    turn->start_ns = peer->plan.start_ns = start;
    turn->end_ns = peer->plan.end_ns = start + core->settings.slice_ns;
    turn->stamp = ++core->stamp;
    xco_control_timer(core, turn->end_ns - core->settings.lead_ns, XCO_TIMER_SLICE, host,
                      turn->stamp);
    peer->plan_due = true;
    xco_control_queue(core, host);
}

static void advance_all(struct xco_control *core, uint64_t now_ns) {
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL) {
            advance(core, now_ns, host);
        }
    }
}

void xco_slices_reported(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    if (xco_lone_heard(core, now_ns, host)) {
        advance_all(core, now_ns);
    }
    if (gives_up(core->peers[host], now_ns)) {
        give_up(core, now_ns, host);
    }
    offer(core, now_ns, host);
}

// Event 1 of a lone turn: the scheduler accounts for it and grants it again, which extends it.
static void go_on_alone(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    const struct xco_turn turn = core->peers[host]->turn;
    core->counters.events_expired++;
    const int changed =
        xco_schedule_expired(core->schedule, schedule_clock(core, now_ns), host, core->grants);
    const struct xco_grant *grant = &core->grants[0];
    if (changed == 1 && grant->host == host && grant->destination == turn.destination &&
        grant->rate_bps == turn.rate_bps) {
        xco_lone_extend(core, now_ns, host);
        return;
    }
    const uint64_t at = later(turn.end_ns, now_ns);
    stop_turn(core, host, turn.end_ns, turn.end_ns);
    carry_out(core, changed, now_ns, at, host, turn.first_sequence);
}

// Event 1: the timeslice ends `lead_ns` from now.
void xco_slices_ending(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp) {
    struct xco_peer *peer = core->peers[host];
    const struct xco_turn ended = peer->turn;
    if (ended.destination == XCO_NONE || ended.stamp != stamp) {
        return;
    }
    if (xco_lone_is(core, host)) {
        go_on_alone(core, now_ns, host);
        return;
    }
    core->counters.events_expired++;
    core->counters.slices_late += now_ns > ended.end_ns;
    const uint64_t at = ended.end_ns > now_ns ? ended.end_ns : now_ns;
    stop_turn(core, host, ended.end_ns, ended.end_ns);
    const int changed =
        xco_schedule_expired(core->schedule, schedule_clock(core, at), host, core->grants);
    carry_out(core, changed, now_ns, at, host, ended.first_sequence);
}

void xco_slices_leave(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stop_ns) {
    stop_turn(core, host, stop_ns, stop_ns);
    xco_lone_want(core, host, NULL, 0);
    const int changed =
        xco_schedule_leave(core->schedule, schedule_clock(core, now_ns), host, core->grants);
    carry_out(core, changed, now_ns, now_ns, host, 0);
    xco_control_dirty(core, stop_ns);
}
