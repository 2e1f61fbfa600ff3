// The core's published state: counters, gauges, a row for each host.
#include "controller/engine/view.h"

#include <string.h>

#include "controller/engine/ports.h"
#include "controller/engine/state.h"

bool xco_control_failed(const struct xco_control *core) {
    return core->failed;
}

const struct xco_control_settings *xco_control_settings_of(const struct xco_control *core) {
    return &core->settings;
}

uint32_t xco_control_hosts(const struct xco_control *core) {
    return core->network.hosts;
}

struct xco_counters *xco_control_counters(struct xco_control *core) {
    return &core->counters;
}

static void add_entries(const struct xco_peer *peer, uint64_t row[XCO_CONTROLLER_COLUMNS]) {
    for (size_t i = 0; i < peer->report.count; i++) {
        const struct xco_waiting *entry = &peer->report.entries[i];
        row[XCO_ROW_backlog_flows] += entry->backlog_bytes > 0;
        row[XCO_ROW_backlog_bytes] += entry->backlog_bytes;
        row[XCO_ROW_rate_kbps] += entry->rate_kbps;
    }
    for (size_t i = 0; i < peer->plan.count; i++) {
        row[XCO_ROW_granted_bps] += peer->plan.entries[i].rate_bps;
    }
}

void xco_control_row(const struct xco_control *core, uint32_t host, uint64_t now_ns,
                     uint64_t row[XCO_CONTROLLER_COLUMNS]) {
    memset(row, 0, XCO_CONTROLLER_COLUMNS * sizeof *row);
    const struct xco_peer *peer = core->peers[host];
    if (peer == NULL) {
        return;
    }
    row[XCO_ROW_joined] = peer->joined;
    row[XCO_ROW_coordinated] = peer->coordinated;
    row[XCO_ROW_mode] = peer->plan.mode;
    row[XCO_ROW_silent_ns] = now_ns > peer->heard_ns ? now_ns - peer->heard_ns : 0;
    row[XCO_ROW_fell_back] = (peer->report.flags & XCO_FLAG_FELL_BACK) != 0;
    row[XCO_ROW_slices] = peer->slices;
    row[XCO_ROW_granted_ns] = peer->granted_ns;
    add_entries(peer, row);
}

void xco_control_gauge(struct xco_control *core) {
    core->counters.hosts_joined = 0;
    core->counters.hosts_coordinated = 0;
    core->counters.links_contended = 0;
    core->counters.places_known = core->where.known - core->whole;
    core->counters.ports_known = 0;
    for (uint32_t host = 0; host < core->network.hosts; host++) {
        const struct xco_peer *peer = core->peers[host];
        core->counters.hosts_joined += peer != NULL && peer->joined;
        core->counters.hosts_coordinated += peer != NULL && peer->joined && peer->coordinated;
    }
    for (uint32_t link = 0; link < xco_network_directed(&core->network); link++) {
        core->counters.links_contended += core->channels[link].contended;
        core->counters.ports_known += xco_ports_known(&core->ports[link], core->now_ns);
    }
}
