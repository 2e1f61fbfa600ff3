// The strategy `gcc`: counters of switch ports, and what hosts may share of each.
#include "controller/engine/ports.h"

#include <string.h>

#include "controller/engine/outbox.h"

#define SILENCE_NS 3000000000u   // a port not reported for this long counts as unreported
#define SHORTEST_NS 2000000u     // shorter periods are taken together with the next
#define HOST_FIRST_NS 200000000u // for this long a host's own report counts, and no agent's
#define IMPOSSIBLE 1.1           // of the capacity: no port sends that much
#define BURST_BITS 1e6           // beside it: counters are not read at one instant
#define NEWS 200u                // a change of this part of the capacity is worth a plan

bool xco_ports_known(const struct xco_port_state *port, uint64_t now_ns) {
    return port->heard_ns != 0 && now_ns - port->heard_ns < SILENCE_NS;
}

// Returns the directed link of a port; XCO_NONE: it is not in the tree.
static uint32_t link_of(const struct xco_network *network, const struct xco_port *port) {
    const uint32_t nodes = network->hosts + network->switches;
    if (port->source >= nodes || port->target >= nodes) {
        return XCO_NONE;
    }
    if (network->parent[port->source] == port->target) {
        return network->uplink[port->source];
    }
    return network->parent[port->target] == port->source ? network->uplink[port->target] ^ 1u
                                                         : XCO_NONE;
}

static bool restarted(const struct xco_port *before, const struct xco_port *now) {
    return now->packets < before->packets || now->bytes < before->bytes ||
           now->coordinated_bytes < before->coordinated_bytes || now->marks < before->marks ||
           now->drops < before->drops;
}

// Returns the period between two counts. A host knows what of it came from hosts; of what an agent
// counts, the senders know.
static struct xco_budget_period period_of(const struct xco_port_state *state,
                                          const struct xco_port *now, bool by_host) {
    const struct xco_port *before = &state->last;
    const uint64_t coordinated = by_host ? now->coordinated_bytes - before->coordinated_bytes
                                         : state->sent_bytes - state->sent_then;
    return (struct xco_budget_period){
        .seconds = (double)(now->read_ns - before->read_ns) / 1e9,
        .bits = 8.0 * (double)(now->bytes - before->bytes),
        .coordinated_bits = 8.0 * (double)coordinated,
        .packets = (double)(now->packets - before->packets),
        .marks = (double)(now->marks - before->marks),
        .drops = (double)(now->drops - before->drops),
    };
}

static void keep(struct xco_port_state *state, const struct xco_port *now) {
    state->last = *now;
    state->sent_then = state->sent_bytes;
}

// Computes the budget again, and the rates with it if it changed by enough.
static void settle(struct xco_control *core, uint64_t now_ns, uint32_t link) {
    struct xco_port_state *state = &core->ports[link];
    const uint64_t capacity = xco_network_capacity(&core->network, link);
    const double aim = (double)core->settings.pace_permille / 1e3;
    const uint64_t shared = (uint64_t)xco_budget_shared(&state->budget, (double)capacity, aim);
    const uint64_t before = state->shared_bps;
    const uint64_t apart = shared > before ? shared - before : before - shared;
    const bool whole = shared == xco_control_paced(core, capacity) && shared != before;
    if (apart >= capacity / NEWS || whole) {
        state->shared_bps = shared;
        xco_control_dirty(core, now_ns);
    }
}

// Begins again with a port: after a restart, a silence, or another reporter.
static void begin(struct xco_control *core, uint64_t now_ns, uint32_t link,
                  const struct xco_port *port) {
    struct xco_port_state *state = &core->ports[link];
    if (!xco_ports_known(state, now_ns)) {
        state->budget = xco_budget_begin((double)xco_network_capacity(&core->network, link));
    }
    keep(state, port);
}

static void take(struct xco_control *core, uint64_t now_ns, uint32_t link,
                 const struct xco_port *port, bool by_host) {
    struct xco_port_state *state = &core->ports[link];
    const double capacity = (double)xco_network_capacity(&core->network, link);
    const bool other = by_host != (state->by_host_ns == state->heard_ns);
    if (!xco_ports_known(state, now_ns) || other || restarted(&state->last, port)) {
        core->counters.ports_begun++;
        begin(core, now_ns, link, port);
    } else if (port->read_ns < state->last.read_ns + SHORTEST_NS) {
        core->counters.ports_stale += port->read_ns <= state->last.read_ns;
        return;
    } else {
        const struct xco_budget_period seen = period_of(state, port, by_host);
        keep(state, port);
        if (seen.bits > IMPOSSIBLE * capacity * seen.seconds + BURST_BITS) {
            core->counters.ports_impossible++;
        } else {
            state->new_marks += seen.marks;
            xco_budget_observe(&state->budget, &seen, capacity);
        }
    }
    state->heard_ns = now_ns;
    state->by_host_ns = by_host ? now_ns : state->by_host_ns;
    settle(core, now_ns, link);
}

// Whether a report of a port counts: an agent's last one, and no agent's where the host reports.
static bool counts(struct xco_port_state *state, uint64_t now_ns, const struct xco_header *header) {
    if (header->host != XCO_AGENT) {
        return true;
    }
    if (header->sequence <= state->sequence) {
        return false;
    }
    state->sequence = header->sequence;
    return state->by_host_ns == 0 || now_ns - state->by_host_ns >= HOST_FIRST_NS;
}

enum xco_receive_result xco_ports_receive(struct xco_control *core, uint64_t now_ns,
                                          const struct xco_message *message) {
    const struct xco_ports *ports = &message->body.ports;
    core->counters.received_ports++;
    for (size_t i = 0; i < ports->count; i++) {
        const uint32_t link = link_of(&core->network, &ports->entries[i]);
        if (link == XCO_NONE) {
            core->counters.ports_unknown++;
        } else if (counts(&core->ports[link], now_ns, &message->header)) {
            take(core, now_ns, link, &ports->entries[i], message->header.host != XCO_AGENT);
        }
    }
    return XCO_OBEYED;
}

// Returns what a report says of a destination, or NULL.
static const struct xco_waiting *entry_of(const struct xco_report *report, uint16_t destination) {
    for (size_t i = 0; i < report->count; i++) {
        if (report->entries[i].destination == destination) {
            return &report->entries[i];
        }
    }
    return NULL;
}

void xco_ports_sent(struct xco_control *core, uint32_t host, const struct xco_report *before,
                    const struct xco_report *now) {
    for (size_t i = 0; i < now->count; i++) {
        const struct xco_waiting *entry = &now->entries[i];
        const struct xco_waiting *last = entry_of(before, entry->destination);
        if (last == NULL || entry->sent_bytes < last->sent_bytes ||
            entry->destination >= core->network.hosts || entry->destination == host) {
            continue;
        }
        uint32_t path[XCO_PATH_MAX];
        const size_t length = xco_network_path(&core->network, host, entry->destination, path);
        for (size_t j = 0; j < length; j++) {
            core->ports[path[j]].sent_bytes += entry->sent_bytes - last->sent_bytes;
        }
    }
}

uint64_t xco_ports_left(const struct xco_control *core, uint32_t link, uint64_t now_ns) {
    const struct xco_port_state *state = &core->ports[link];
    return xco_ports_known(state, now_ns) && state->shared_bps > 0
               ? state->shared_bps
               : xco_control_paced(core, xco_network_capacity(&core->network, link));
}
