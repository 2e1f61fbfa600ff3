// Lone turns: extends a turn while no other host wants its links, so that late wake-ups cost
// nothing.
//
// The controller extends a lone turn far beyond its end, and again when half of that is left. When
// another host wants one of its links, the turn becomes a normal slice. The calendar keeps the time
// taken back until the host acknowledges it (docs/decisions/0069-turns-that-go-on.md).
#include "controller/engine/lone.h"

#include "controller/engine/fallback.h"
#include "controller/engine/outbox.h"

#define LONGEST_NS 25000000u // the kernel closes a gate by itself within 40 ms (qdisc/tree.c)

// Without a directive for `silence_ns` a host falls back: no turn is granted beyond that.
static uint64_t longest_ns(const struct xco_control *core) {
    const uint64_t half = core->settings.silence_ns / 2;
    return half < LONGEST_NS ? half : LONGEST_NS;
}

static size_t path_of(const struct xco_control *core, uint32_t host, uint32_t destination,
                      uint32_t path[XCO_PATH_MAX]) {
    return xco_network_path(&core->network, host, destination, path);
}

static bool is_crowded(const struct xco_control *core, uint32_t link) {
    return core->channels[link].wanted_bps > xco_network_capacity(&core->network, link);
}

// Returns the rate that a flow could take of its links.
static uint64_t full_rate(const struct xco_control *core, uint32_t host, uint32_t destination) {
    return xco_schedule_full_rate_bps(core->schedule, host, destination);
}

static void want_more(struct xco_control *core, uint32_t host, uint32_t destination) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, destination, path);
    const uint64_t rate = full_rate(core, host, destination);
    for (size_t i = 0; i < length; i++) {
        core->channels[path[i]].wanted_bps += rate;
    }
}

void xco_lone_want_less(struct xco_control *core, uint32_t host, uint32_t destination) {
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, destination, path);
    const uint64_t rate = full_rate(core, host, destination);
    for (size_t i = 0; i < length; i++) {
        core->channels[path[i]].wanted_bps -= rate;
    }
}

void xco_lone_want(struct xco_control *core, uint32_t host, const uint32_t *group, size_t count) {
    struct xco_peer *peer = core->peers[host];
    for (size_t i = 0; i < peer->offered_count; i++) {
        xco_lone_want_less(core, host, peer->offered[i]);
    }
    for (size_t i = 0; i < count; i++) {
        peer->offered[i] = group[i];
        want_more(core, host, group[i]);
    }
    peer->offered_count = count;
}

// Whether the turn may be extended. `hybrid` changes rates outside turns with each plan and
// `published` preempts at any time: there, a turn is never longer than a slice.
static bool may_go_on(const struct xco_control *core, const struct xco_peer *peer) {
    return core->settings.strategy == XCO_TIMESLICE && core->settings.policy == XCO_FAIR &&
           longest_ns(core) > core->settings.slice_ns && peer->plan.mode == XCO_SLICE &&
           peer->plan.start_ns == peer->turn.start_ns && !peer->cut_due;
}

bool xco_lone_is(const struct xco_control *core, uint32_t host) {
    const struct xco_peer *peer = core->peers[host];
    const struct xco_grant grant = {host, peer->turn.destination, peer->turn.rate_bps};
    if (!may_go_on(core, peer) || xco_fallen_told(core, &grant) != peer->turn.told_bps) {
        return false;
    }
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, peer->turn.destination, path);
    for (size_t i = 0; i < length; i++) {
        if (is_crowded(core, path[i])) {
            return false;
        }
    }
    return true;
}

static void count_lone(struct xco_control *core, uint32_t host, bool lone) {
    struct xco_turn *turn = &core->peers[host]->turn;
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, turn->destination, path);
    for (size_t i = 0; i < length && turn->lone != lone; i++) {
        core->channels[path[i]].lone += lone ? 1u : UINT32_MAX;
    }
    turn->lone = lone;
}

void xco_lone_end(struct xco_control *core, uint32_t host) {
    count_lone(core, host, false);
}

// Moves the end of a turn, and tells its host.
static void move_end(struct xco_control *core, uint32_t host, uint64_t end_ns, uint64_t timer_ns) {
    struct xco_peer *peer = core->peers[host];
    struct xco_turn *turn = &peer->turn;
    peer->granted_ns += end_ns - turn->end_ns;
    turn->end_ns = peer->plan.end_ns = end_ns;
    turn->stamp = ++core->stamp;
    xco_control_timer(core, timer_ns, XCO_TIMER_SLICE, host, turn->stamp);
    peer->plan_due = true;
    xco_control_queue(core, host);
}

void xco_lone_extend(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    count_lone(core, host, true);
    core->peers[host]->slices++;
    core->counters.slices_extended++;
    move_end(core, host, now_ns + longest_ns(core), now_ns + longest_ns(core) / 2);
}

// Keeps in the calendar the time in which a host may still send; while its turn runs, the turn
// covers that time.
static void note_taken(struct xco_control *core, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    const struct xco_turn *turn = &peer->turn;
    const struct xco_rest rest = {turn->end_ns, turn->rate_bps, turn->rate_bps, host, XCO_NONE};
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, turn->destination, path);
    for (size_t i = 0; i < length; i++) {
        core->failed |= !xco_calendar_note(&core->calendar, path[i], rest);
    }
    peer->taken = (struct xco_taken){turn->end_ns, 0, turn->destination};
}

// Turns a lone turn into a slice that begins now.
static void cut(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    const struct xco_turn *turn = &core->peers[host]->turn;
    count_lone(core, host, false);
    uint64_t end = now_ns + core->settings.slice_ns;
    if (end < turn->end_ns) {
        note_taken(core, host);
    } else {
        end = turn->end_ns;
    }
    move_end(core, host, end, end - core->settings.lead_ns);
}

static void cut_on(struct xco_control *core, uint64_t now_ns, uint32_t link) {
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        const struct xco_peer *peer = core->peers[host];
        if (peer != NULL && peer->turn.lone &&
            xco_network_crosses(&core->network, host, peer->turn.destination, link)) {
            cut(core, now_ns, host);
        }
    }
}

void xco_lone_yield(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    const struct xco_peer *peer = core->peers[host];
    for (size_t i = 0; i < peer->offered_count; i++) {
        uint32_t path[XCO_PATH_MAX];
        const size_t length = path_of(core, host, peer->offered[i], path);
        for (size_t j = 0; j < length; j++) {
            if (core->channels[path[j]].lone > 0 && is_crowded(core, path[j])) {
                cut_on(core, now_ns, path[j]);
            }
        }
    }
}

void xco_lone_review(struct xco_control *core, uint64_t now_ns) {
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        const struct xco_peer *peer = core->peers[host];
        if (peer != NULL && peer->turn.lone && !xco_lone_is(core, host)) {
            cut(core, now_ns, host);
        }
    }
}

bool xco_lone_heard(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    const struct xco_taken taken = peer->taken;
    if (taken.sequence == 0 || peer->report.directive_sequence < taken.sequence) {
        return false;
    }
    uint32_t path[XCO_PATH_MAX];
    const size_t length = path_of(core, host, taken.destination, path);
    for (size_t i = 0; i < length; i++) {
        xco_calendar_drop(&core->calendar, path[i], host, taken.until_ns);
    }
    peer->taken = (struct xco_taken){0};
    // while its turn runs, no other turn waits for it
    return peer->turn.destination != taken.destination || peer->turn.start_ns > now_ns;
}
