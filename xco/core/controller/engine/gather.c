// The flows that get a rate, by the reports of their hosts.
#include "controller/engine/gather.h"

#include <stdlib.h>

#include "controller/engine/demands.h"
#include "common/least.h"

bool xco_gather_planned(const struct xco_peer *peer) {
    return peer != NULL && peer->joined && peer->coordinated;
}

static bool can_carry(const struct xco_control *core, uint32_t host, uint32_t destination) {
    return destination < core->network.hosts && destination != host;
}

static bool is_active(const struct xco_waiting *entry) {
    return entry->backlog_bytes > 0 || entry->rate_kbps > 0;
}

static bool reserve_flows(struct xco_control *core, size_t count) {
    if (count <= core->flows_room) {
        return true;
    }
    struct xco_fill_flow *flows = realloc(core->flows, 2 * count * sizeof *flows);
    if (flows == NULL) {
        core->failed = true;
        return false;
    }
    core->flows = flows;
    core->flows_room = 2 * count;
    return true;
}

// Whether a flow gets a rate: every active one; in `hybrid` those waiting for a turn.
static bool takes_part(const struct xco_control *core, uint32_t host,
                       const struct xco_waiting *entry) {
    if (!can_carry(core, host, entry->destination)) {
        return false;
    }
    if (!xco_grants_slices(core->settings.strategy)) {
        return is_active(entry);
    }
    return entry->backlog_bytes > 0 && entry->destination != core->peers[host]->turn.destination;
}

// Whether the weights and guarantees of VMs count, and demands. Next to slices they do not: slices
// ignore them.
static bool by_vm(const struct xco_control *core) {
    return !xco_grants_slices(core->settings.strategy);
}

static uint64_t weight_of(const struct xco_control *core, uint32_t host,
                          const struct xco_waiting *entry) {
    const uint64_t weight = core->weights == NULL ? 1 : core->weights[host];
    return by_vm(core) ? weight * xco_most(1, entry->weight) : weight;
}

static uint64_t demand_of(const struct xco_control *core, uint32_t host,
                          const struct xco_waiting *entry, uint64_t now_ns) {
    return by_vm(core) ? xco_demands_of(core->peers[host], entry, now_ns) : XCO_FILL_GREEDY;
}

static size_t add_flows(struct xco_control *core, uint32_t host, size_t count, uint64_t now_ns) {
    const struct xco_report *report = &core->peers[host]->report;
    for (size_t i = 0; i < report->count; i++) {
        if (takes_part(core, host, &report->entries[i])) {
            core->flows[count++] = (struct xco_fill_flow){
                .source = host,
                .destination = report->entries[i].destination,
                .weight = weight_of(core, host, &report->entries[i]),
                .demand_bps = demand_of(core, host, &report->entries[i], now_ns),
                .guarantee_mbps = by_vm(core) ? report->entries[i].guarantee_mbps : 0,
            };
        }
    }
    return count;
}

size_t xco_gather(struct xco_control *core, uint64_t now_ns) {
    size_t count = 0;
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        if (!xco_gather_planned(core->peers[host])) {
            continue;
        }
        if (!reserve_flows(core, count + XCO_ENTRIES_MAX)) {
            return 0;
        }
        count = add_flows(core, host, count, now_ns);
    }
    return count;
}
