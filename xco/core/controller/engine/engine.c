// Puts the core together: memory, deadlines, the outbox.
#include "controller/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "controller/engine/claims.h"
#include "controller/engine/contention.h"
#include "controller/engine/fallback.h"
#include "controller/engine/hosts.h"
#include "controller/engine/outbox.h"
#include "controller/engine/rates.h"
#include "controller/engine/slices.h"
#include "controller/engine/state.h"
#include "controller/engine/yield.h"

// Limits how often rates and contention are computed: a plan takes about a tenth of the gap after
// it. Its time grows with the number of hosts and with the steps over their flows.
#define PLAN_GAP_NS_PER_HOST 1000u
#define PLAN_GAP_NS_PER_VISIT 1000u

static struct xco_schedule *new_schedule(const struct xco_control *core, const char **problem) {
    const struct xco_control_settings *settings = &core->settings;
    const struct xco_schedule_options options = {
        .hosts = core->network.hosts,
        .switches = core->network.switches,
        .links = core->network.links,
        .policy = settings->policy,
        .limit_rates = 1,
        .threshold_ns = settings->threshold_ns,
        .patience_ns = settings->patience_ns,
        .memory_ns = 100 * settings->slice_ns,
        .least_share = 1.0,
    };
    return xco_schedule_new(&options, problem);
}

static bool weigh(const struct xco_control *core) {
    for (uint32_t host = 0; core->weights != NULL && host < core->network.hosts; host++) {
        if (xco_schedule_weigh_host(core->schedule, host, core->weights[host]) != 0) {
            return false;
        }
    }
    return true;
}

static bool allocate(struct xco_control *core) {
    const size_t hosts = core->network.hosts;
    core->peers = calloc(hosts, sizeof *core->peers);
    core->channels = calloc(xco_network_directed(&core->network) + 1, sizeof *core->channels);
    core->ports = calloc(xco_network_directed(&core->network) + 1, sizeof *core->ports);
    core->grants = calloc(hosts, sizeof *core->grants);
    core->outbox = calloc(hosts, sizeof *core->outbox);
    return core->peers != NULL && core->channels != NULL && core->ports != NULL &&
           core->grants != NULL && core->outbox != NULL && xco_fallen_init(core) &&
           xco_claims_init(core) &&
           xco_extras_init(&core->extras, xco_network_directed(&core->network)) &&
           xco_calendar_init(&core->calendar, xco_network_directed(&core->network)) &&
           xco_fill_init(&core->fill, &core->network) == 0;
}

struct xco_control *xco_control_new(const struct xco_control_settings *settings,
                                    struct xco_network *network, uint32_t *weights,
                                    const char **problem) {
    *problem = "out of memory";
    struct xco_control *core = calloc(1, sizeof *core);
    if (core == NULL) {
        xco_network_free(network);
        free(weights);
        return NULL;
    }
    core->settings = *settings;
    core->network = *network;
    core->weights = weights;
    core->counters.epoch = settings->epoch;
    *network = (struct xco_network){0};
    if (allocate(core)) {
        core->schedule = new_schedule(core, problem);
    }
    if (core->schedule != NULL && !weigh(core)) {
        *problem = "a weight is no number above 0";
        xco_schedule_free(core->schedule);
        core->schedule = NULL;
    }
    if (core->schedule == NULL) {
        xco_control_free(core);
        return NULL;
    }
    return core;
}

void xco_control_free(struct xco_control *core) {
    if (core == NULL) {
        return;
    }
    xco_claims_free(core);
    for (size_t host = 0; core->peers != NULL && host < core->network.hosts; host++) {
        free(core->peers[host] == NULL ? NULL : core->peers[host]->sources);
        free(core->peers[host]);
    }
    xco_schedule_free(core->schedule);
    xco_network_free(&core->network);
    xco_timers_free(&core->timers);
    xco_fill_free(&core->fill);
    xco_calendar_free(&core->calendar);
    xco_extras_free(&core->extras);
    free(core->weights);
    free(core->peers);
    free(core->channels);
    free(core->ports);
    free(core->below);
    free(core->grants);
    free(core->flows);
    free(core->outbox);
    free(core);
}

bool xco_control_succeed(struct xco_control *core, const struct xco_control *before) {
    core->sequence = before->sequence;
    core->counters = before->counters;
    return xco_peers_succeed(core, before);
}

enum xco_receive_result xco_control_receive(struct xco_control *core, uint64_t now_ns,
                                            uint64_t arrived_ns,
                                            const struct xco_message *message) {
    return xco_peers_receive(core, now_ns, arrived_ns, message);
}

bool xco_control_set_strategy(struct xco_control *core, uint64_t now_ns, uint8_t strategy) {
    if (strategy > XCO_GCC) {
        return false;
    }
    core->settings.strategy = strategy;
    xco_extras_clear(&core->extras, xco_network_directed(&core->network));
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->joined) {
            xco_peers_begin_again(core, now_ns, host);
        }
    }
    xco_control_dirty(core, now_ns);
    return true;
}

// Recomputes contention and rates, or sets a timer if that was done recently.
static void plan_if_due(struct xco_control *core, uint64_t now_ns) {
    if (!core->plan_dirty) {
        return;
    }
    const uint64_t gap = UINT64_C(1) * PLAN_GAP_NS_PER_HOST * core->network.hosts +
                         PLAN_GAP_NS_PER_VISIT * core->plan_visits;
    if (core->planned_ns != 0 && now_ns < core->planned_ns + gap) {
        xco_control_plan_at(core, core->planned_ns + gap);
        return;
    }
    core->plan_dirty = false;
    core->plan_visits = 0;
    core->planned_ns = now_ns;
    core->counters.plans_computed++;
    if (core->settings.on_demand) {
        xco_contention_census(core, now_ns);
    }
    if (core->settings.strategy != XCO_TIMESLICE) {
        xco_rates_plan(core, now_ns);
    }
    if (core->settings.strategy == XCO_HYBRID) {
        xco_yield_note(core, now_ns);
    }
    core->plan_from_ns = 0;
}

void xco_control_advance(struct xco_control *core, uint64_t now_ns) {
    struct xco_timer due;
    core->began_ns = core->began_ns == 0 ? now_ns : core->began_ns;
    core->now_ns = now_ns;
    while (xco_timers_take_due(&core->timers, now_ns, &due)) {
        switch (due.kind) {
        case XCO_TIMER_SLICE:
            xco_slices_ending(core, now_ns, due.host, due.stamp);
            break;
        case XCO_TIMER_CARE:
            xco_peers_care(core, now_ns, due.host, due.stamp);
            break;
        default:
            core->plan_timed_ns = due.at_ns == core->plan_timed_ns ? 0 : core->plan_timed_ns;
            core->plan_dirty = true;
            break;
        }
    }
    plan_if_due(core, now_ns);
}

uint64_t xco_control_deadline(const struct xco_control *core) {
    return xco_timers_next(&core->timers);
}

static void take_header(struct xco_control *core, uint64_t now_ns, uint8_t type,
                        struct xco_message *message) {
    message->header =
        (struct xco_header){type, XCO_CONTROLLER, core->settings.epoch, ++core->sequence, now_ns};
}

static void take_welcome(struct xco_control *core, uint64_t now_ns, uint32_t host,
                         struct xco_message *message) {
    struct xco_peer *peer = core->peers[host];
    take_header(core, now_ns, XCO_WELCOME, message);
    message->body.welcome = (struct xco_welcome){
        .to = (uint16_t)host,
        .status = peer->welcome_status,
        .strategy = core->settings.strategy,
        .slice_ns = core->settings.slice_ns,
        .silence_ns = core->settings.silence_ns,
        .echo_sent_ns = peer->echo_sent_ns,
        .echo_received_ns = peer->echo_received_ns,
    };
    peer->welcome_due = false;
    core->counters.welcomes_sent++;
}

static void take_answer(struct xco_control *core, uint64_t now_ns, struct xco_message *message) {
    take_header(core, now_ns, XCO_WELCOME, message);
    message->body.welcome = (struct xco_welcome){
        .to = core->answer.to,
        .status = core->answer.status,
        .strategy = core->settings.strategy,
        .slice_ns = core->settings.slice_ns,
        .silence_ns = core->settings.silence_ns,
        .echo_sent_ns = core->answer.sent_ns,
        .echo_received_ns = core->answer.arrived_ns,
    };
    core->answer.due = false;
    core->counters.welcomes_sent++;
}

static void count_exchange(struct xco_control *core, struct xco_peer *peer, uint64_t now_ns) {
    if (peer->changed_ns == 0) {
        return;
    }
    const uint64_t took = now_ns - peer->changed_ns;
    peer->changed_ns = 0;
    core->counters.exchange_count++;
    core->counters.exchange_ns += took;
    if (took > core->counters.exchange_ns_max) {
        core->counters.exchange_ns_max = took;
    }
}

// Stamps a directive with the instants that let its host read our clock.
static void take_stamped(struct xco_control *core, uint64_t now_ns, struct xco_peer *peer,
                         struct xco_directive *directive, struct xco_message *message) {
    take_header(core, now_ns, XCO_DIRECTIVE, message);
    directive->echo_sent_ns = peer->echo_sent_ns;
    directive->echo_received_ns = peer->echo_received_ns;
    message->body.directive = *directive;
    core->counters.directives_sent++;
}

static void take_directive(struct xco_control *core, uint64_t now_ns, uint32_t host,
                           struct xco_message *message) {
    struct xco_peer *peer = core->peers[host];
    take_stamped(core, now_ns, peer, &peer->plan, message);
    peer->plan_due = false;
    peer->sent_sequence = core->sequence;
    peer->sent_ns = now_ns;
    if (peer->turn.destination != XCO_NONE && peer->turn.first_sequence == 0) {
        peer->turn.first_sequence = core->sequence;
    }
    if (peer->taken.until_ns != 0 && peer->taken.sequence == 0) {
        peer->taken.sequence = core->sequence;
    }
    count_exchange(core, peer, now_ns);
}

static bool is_map_due(const struct xco_peer *peer) {
    return peer->joined && peer->claims != NULL && peer->claims->due;
}

static void take_map(struct xco_control *core, uint64_t now_ns, uint32_t host,
                     struct xco_message *message) {
    take_header(core, now_ns, XCO_MAP, message);
    xco_claims_take(core, now_ns, host, &message->body.map);
}

bool xco_control_take(struct xco_control *core, uint64_t now_ns, struct xco_message *message) {
    if (core->answer.due) {
        take_answer(core, now_ns, message);
        return true;
    }
    while (core->outbox_count > 0) {
        const uint32_t host = core->outbox[core->outbox_first];
        struct xco_peer *peer = core->peers[host];
        if (peer->welcome_due) {
            take_welcome(core, now_ns, host, message);
            return true;
        }
        if (peer->cut_due && peer->joined) {
            peer->cut_due = false;
            take_stamped(core, now_ns, peer, &peer->held, message);
            return true;
        }
        core->outbox_first = (core->outbox_first + 1) % core->network.hosts;
        core->outbox_count--;
        peer->queued = false;
        if (peer->plan_due && peer->joined) {
            take_directive(core, now_ns, host, message);
            if (is_map_due(peer)) {
                xco_control_queue(core, host);
            }
            return true;
        }
        if (is_map_due(peer)) {
            take_map(core, now_ns, host, message);
            return true;
        }
    }
    return false;
}
