// Messages of hosts: joining, reports, leaving, silence.
#include "controller/engine/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "controller/engine/claims.h"
#include "controller/engine/demands.h"
#include "controller/engine/fallback.h"
#include "controller/engine/lone.h"
#include "controller/engine/outbox.h"
#include "controller/engine/ports.h"
#include "controller/engine/slices.h"
#include "controller/engine/state.h"

// A directive not acknowledged after this long is sent again when its host next reports.
#define AGAIN_NS 1000000u

static struct xco_peer *find_peer(struct xco_control *core, uint32_t host) {
    if (core->peers[host] == NULL) {
        struct xco_peer *peer = calloc(1, sizeof *peer);
        if (peer == NULL) {
            core->failed = true;
            return NULL;
        }
        peer->turn.destination = XCO_NONE;
        core->peers[host] = peer;
    }
    return core->peers[host];
}

bool xco_peers_succeed(struct xco_control *core, const struct xco_control *before) {
    for (uint32_t host = 0; host < core->network.hosts && host < before->network.hosts; host++) {
        const struct xco_peer *heard = before->peers[host];
        if (heard == NULL) {
            continue;
        }
        struct xco_peer *peer = find_peer(core, host);
        if (peer == NULL) {
            return false;
        }
        peer->origin = heard->origin;
        peer->heard_ns = heard->heard_ns;
    }
    return true;
}

// Whether a sequence is later than its host's last; any is, for a new host.
static bool is_later(struct xco_control *core, const struct xco_claim *claim) {
    const struct xco_peer *peer = core->peers[claim->host];
    if (peer == NULL || claim->sequence > peer->origin.sequence) {
        return true;
    }
    if (claim->sequence == peer->origin.sequence) {
        core->counters.dropped_duplicate++;
    } else {
        core->counters.dropped_late++;
    }
    return false;
}

bool xco_control_heeds(struct xco_control *core, const struct xco_claim *claim) {
    if (claim->host == XCO_CONTROLLER) {
        core->counters.dropped_direction++;
        return false;
    }
    if (claim->host < core->network.hosts) {
        return is_later(core, claim);
    }
    if (claim->host == XCO_AGENT && claim->type == XCO_PORT) {
        return true; // several agents, each with its own sequence: it is checked by port
    }
    core->counters.dropped_unknown_host++;
    return claim->type == XCO_HELLO && claim->host < XCO_HOSTS_MAX;
}

static enum xco_receive_result welcome(struct xco_control *core, uint32_t host, uint8_t status) {
    core->peers[host]->welcome_due = true;
    core->peers[host]->welcome_status = status;
    xco_control_queue(core, host);
    return status == XCO_JOINED ? XCO_OBEYED : XCO_ANSWERED;
}

// Removes a host everywhere; its links are free from `stop_ns` on.
static void remove_host(struct xco_control *core, uint64_t now_ns, uint32_t host,
                        uint64_t stop_ns) {
    struct xco_peer *peer = core->peers[host];
    if (!peer->joined) {
        return;
    }
    xco_slices_leave(core, now_ns, host, stop_ns);
    peer->joined = false;
    peer->report = (struct xco_report){0};
    peer->pair_count = 0;
    xco_control_dirty(core, now_ns);
}

static enum xco_receive_result hello(struct xco_control *core, uint64_t now_ns, uint32_t host,
                                     const struct xco_hello *hello) {
    struct xco_peer *peer = core->peers[host];
    remove_host(core, now_ns, host, now_ns); // it restarted: its earlier turn is over
    xco_fallen_note(core, host, false);
    if (memcmp(hello->digest, core->settings.digest, XCO_DIGEST_BYTES) != 0) {
        core->counters.dropped_topology++;
        return welcome(core, host, XCO_TOPOLOGY_DIFFERS);
    }
    peer->joined = true;
    peer->coordinated = !core->settings.on_demand;
    const struct xco_directive plan = {
        .mode = peer->coordinated ? XCO_CLOSED : XCO_OPEN,
        .start_ns = now_ns,
    };
    xco_control_plan(core, host, &plan, now_ns);
    peer->changed_ns = 0;
    peer->care_stamp = ++core->stamp;
    peer->sent_ns = now_ns;
    xco_control_timer(core, now_ns + core->settings.heartbeat_ns, XCO_TIMER_CARE, host,
                      peer->care_stamp);
    return welcome(core, host, XCO_JOINED);
}

void xco_peers_begin_again(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    const struct xco_peer *peer = core->peers[host];
    xco_slices_leave(core, now_ns, host, now_ns);
    const struct xco_directive plan = {
        .mode = peer->coordinated ? XCO_CLOSED : XCO_OPEN,
        .start_ns = now_ns,
    };
    xco_control_plan(core, host, &plan, now_ns);
    (void)welcome(core, host, XCO_JOINED);
    if (peer->coordinated && xco_grants_slices(core->settings.strategy)) {
        xco_slices_reported(core, now_ns, host);
    }
}

static void note_fallen(struct xco_control *core, uint64_t now_ns, uint32_t host, bool fallen) {
    const bool changes = core->peers[host]->fallen != fallen;
    xco_fallen_note(core, host, fallen);
    if (changes) {
        xco_lone_review(core, now_ns);
    }
}

static void send_again_if_lost(struct xco_control *core, uint64_t now_ns, uint32_t host) {
    struct xco_peer *peer = core->peers[host];
    if (peer->report.directive_sequence < peer->sent_sequence && !peer->plan_due &&
        now_ns > peer->sent_ns + AGAIN_NS) {
        peer->plan_due = true;
        core->counters.directives_sent_again++;
        xco_control_queue(core, host);
    }
}

static enum xco_receive_result report(struct xco_control *core, uint64_t now_ns, uint32_t host,
                                      const struct xco_message *message) {
    struct xco_peer *peer = core->peers[host];
    core->counters.received_reports++;
    core->counters.hosts_fallen_back += (message->body.report.flags & XCO_FLAG_FELL_BACK) != 0 &&
                                        (peer->report.flags & XCO_FLAG_FELL_BACK) == 0;
    if (core->settings.strategy == XCO_GCC) {
        xco_ports_sent(core, host, &peer->report, &message->body.report);
    }
    peer->report = message->body.report;
    xco_demands_note(peer, now_ns);
    note_fallen(core, now_ns, host, (peer->report.flags & XCO_FLAG_FELL_BACK) != 0);
    send_again_if_lost(core, now_ns, host);
    if (peer->coordinated && xco_grants_slices(core->settings.strategy)) {
        xco_slices_reported(core, now_ns, host);
    }
    xco_control_dirty(core, now_ns);
    return XCO_OBEYED;
}

// A message of a host that has not heard this epoch may be a recording from before it. So the host
// hears the epoch first; its next message is then current.
static enum xco_receive_result of_lower_epoch(struct xco_control *core,
                                              const struct xco_header *header) {
    core->counters.dropped_lower_epoch++;
    return welcome(core, header->host, XCO_HELLO_FIRST);
}

// Hosts that obey a higher epoch do not hear us; the holder of the lease may continue above it. A
// controller never gives an epoch too far ahead.
static enum xco_receive_result of_higher_epoch(struct xco_control *core, uint64_t now_ns,
                                               uint64_t epoch) {
    const uint64_t elapsed = core->began_ns == 0 ? 0 : now_ns - core->began_ns;
    if (epoch - core->settings.epoch_most > elapsed && epoch > core->settings.epoch_most) {
        core->counters.dropped_epoch_ahead++;
        return XCO_DROPPED;
    }
    core->counters.dropped_higher_epoch++;
    if (epoch > core->counters.epoch_heard) {
        core->counters.epoch_heard = epoch;
    }
    return XCO_DROPPED;
}

bool xco_control_raise(struct xco_control *core, uint64_t now_ns, uint64_t epoch) {
    if (epoch <= core->settings.epoch) {
        return false;
    }
    core->settings.epoch = core->counters.epoch = epoch;
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (core->peers[host] != NULL && core->peers[host]->joined) {
            xco_peers_begin_again(core, now_ns, host);
        }
    }
    xco_control_dirty(core, now_ns);
    return true;
}

// Remembers to answer a sender that is no host of the topology; of several, the last.
static enum xco_receive_result answer(struct xco_control *core, uint64_t arrived_ns,
                                      const struct xco_header *header, uint8_t status) {
    core->answer = (struct xco_answer){true, status, header->host, header->sent_ns, arrived_ns};
    return XCO_ANSWERED;
}

// Whether ports are numbered as here.
static bool knows_nodes(struct xco_control *core, const struct xco_ports *ports) {
    const bool known = memcmp(ports->digest, core->settings.nodes_digest, XCO_DIGEST_BYTES) == 0;
    core->counters.dropped_topology += !known;
    return known;
}

static enum xco_receive_result refuse(struct xco_control *core, uint64_t arrived_ns,
                                      const struct xco_header *header) {
    if (header->type != XCO_HELLO || header->host == XCO_CONTROLLER) {
        return XCO_DROPPED;
    }
    return answer(core, arrived_ns, header, XCO_UNKNOWN_HOST);
}

static enum xco_receive_result from_agent(struct xco_control *core, uint64_t now_ns,
                                          uint64_t arrived_ns, const struct xco_message *message) {
    const struct xco_header *header = &message->header;
    if (header->epoch > core->settings.epoch) {
        return of_higher_epoch(core, now_ns, header->epoch);
    }
    if (header->epoch < core->settings.epoch) { // possibly a recording from before it
        return answer(core, arrived_ns, header, XCO_HELLO_FIRST);
    }
    if (!knows_nodes(core, &message->body.ports)) {
        return answer(core, arrived_ns, header, XCO_TOPOLOGY_DIFFERS);
    }
    xco_ports_receive(core, now_ns, message);
    return answer(core, arrived_ns, header, XCO_JOINED);
}

enum xco_receive_result xco_peers_receive(struct xco_control *core, uint64_t now_ns,
                                          uint64_t arrived_ns, const struct xco_message *message) {
    const struct xco_header *header = &message->header;
    if (header->host == XCO_AGENT && header->type == XCO_PORT) {
        return from_agent(core, now_ns, arrived_ns, message);
    }
    if (header->host >= core->network.hosts) {
        return refuse(core, arrived_ns, header);
    }
    struct xco_peer *peer = find_peer(core, header->host);
    if (peer == NULL || xco_origin_accept_host(&peer->origin, header->sequence) != XCO_FRESH) {
        return XCO_DROPPED;
    }
    core->counters.received_hellos += header->type == XCO_HELLO;
    if (header->epoch > core->settings.epoch) {
        return of_higher_epoch(core, now_ns, header->epoch);
    }
    peer->heard_ns = now_ns;
    peer->echo_sent_ns = header->sent_ns;
    peer->echo_received_ns = arrived_ns;
    if (header->epoch < core->settings.epoch) {
        return of_lower_epoch(core, header);
    }
    if (header->type == XCO_HELLO) {
        return hello(core, now_ns, header->host, &message->body.hello);
    }
    if (!peer->joined) {
        core->counters.dropped_not_joined++;
        return welcome(core, header->host, XCO_HELLO_FIRST);
    }
    if (header->type == XCO_LEAVE) {
        core->counters.received_leaves++;
        remove_host(core, now_ns, header->host, now_ns);
        xco_fallen_note(core, header->host, false);
        return XCO_OBEYED;
    }
    if (header->type == XCO_PLACES) {
        return xco_claims_told(core, now_ns, header->host, &message->body.map);
    }
    if (header->type == XCO_PORT) {
        return knows_nodes(core, &message->body.ports) ? xco_ports_receive(core, now_ns, message)
                                                       : XCO_OBEYED;
    }
    return header->type == XCO_REPORT ? report(core, now_ns, header->host, message) : XCO_OBEYED;
}

void xco_peers_care(struct xco_control *core, uint64_t now_ns, uint32_t host, uint64_t stamp) {
    struct xco_peer *peer = core->peers[host];
    if (!peer->joined || peer->care_stamp != stamp) {
        return;
    }
    if (now_ns >= peer->heard_ns + core->settings.silence_ns) {
        note_fallen(core, now_ns, host, true); // it probably does not hear us either
    }
    if (now_ns >= peer->heard_ns + core->settings.drop_ns) {
        core->counters.hosts_gone_silent++;
        const uint64_t end = peer->turn.destination == XCO_NONE ? now_ns : peer->turn.end_ns;
        remove_host(core, now_ns, host, end); // it may still send until the end of its slice
        return;
    }
    xco_claims_care(core, now_ns, host);
    if (xco_demands_ended(peer, core->planned_ns, now_ns)) {
        xco_control_dirty(core, now_ns);
    }
    uint64_t next = peer->sent_ns + core->settings.heartbeat_ns;
    if (next <= now_ns) {
        peer->plan_due = true;
        xco_control_queue(core, host);
        next = now_ns + core->settings.heartbeat_ns;
    }
    xco_control_timer(core, next, XCO_TIMER_CARE, host, stamp);
}
