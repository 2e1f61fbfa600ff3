// Congestion marks that arrive, counted by source; part of the coordinator's shell.
#include "coordinator/marks.h"

#include <errno.h>
#include <string.h>

#include "coordinator/refusals.h"
#include "common/log.h"

#define PORT_NS 10000000  // between reports of the port while packets arrive
#define IDLE_NS 500000000 // and while none do

static const char *const COLUMNS[] = {"host",      "packets",     "bytes",   "marks",
                                      "offer_bps", "offered_bps", "refused", "attempts_refused"};

static int explain(struct xco_coordinator *c, int error) {
    const char *problem = xco_shim_problem();
    xco_say("%s: congestion marks cannot be counted (%s%s%s): coordinator.marks asks for it",
            c->config.interface,
            error == -EOPNOTSUPP && problem[0] == '\0' ? "Linux 6.6 can" : strerror(-error),
            problem[0] == '\0' ? "" : ": ", problem);
    c->marks.refused = true;
    return error;
}

static void place_all(struct xco_coordinator *c) {
    for (size_t i = 0; i < c->config.address_count; i++) {
        const struct xco_host_address *entry = &c->config.addresses[i];
        struct xco_place place = {.kind = XCO_PLACE_IP, .vlan = XCO_ANY_VLAN};
        memcpy(place.address, &entry->address, sizeof place.address);
        xco_marks_place(c, &place, entry->host);
    }
}

// A row for each host, and one for all other sources.
static int publish_in(struct xco_coordinator *c) {
    const struct xco_stats_layout layout = {
        .column_names = COLUMNS,
        .columns = sizeof COLUMNS / sizeof COLUMNS[0],
        .rows = c->marks.shim.hosts + 1,
    };
    return xco_stats_open(&c->marks.statistics, c->config.marks, &layout) < 0 ? -errno : 0;
}

int xco_marks_open(struct xco_coordinator *c) {
    if (c->config.shim[0] == '\0') {
        return 0;
    }
    const struct xco_shim_terms terms = {
        .hosts = xco_config_hosts(&c->config),
        .keep = (uint32_t)c->config.shim_keep,
    };
    int error = xco_shim_open(&c->marks.shim, c->config.shim, &terms);
    error = error == 0 ? publish_in(c) : error;
    if (error != 0) {
        return explain(c, error);
    }
    c->marks.counted = true;
    place_all(c);
    return 0;
}

int xco_marks_attach(struct xco_coordinator *c) {
    if (!c->marks.counted) {
        return 0;
    }
    c->marks.refused = false;
    int error = xco_shim_attach(&c->marks.shim, (unsigned)c->gate.tree.interface);
    return error == 0 ? 0 : explain(c, error);
}

void xco_marks_place(struct xco_coordinator *c, const struct xco_place *place, uint16_t host) {
    if (c->marks.counted && xco_shim_place(&c->marks.shim, place, host) != 0) {
        c->counts.places_beyond++;
    }
}

void xco_marks_displace(struct xco_coordinator *c, const struct xco_place *place) {
    if (c->marks.counted) {
        (void)xco_shim_displace(&c->marks.shim, place); // -ENOENT: it was not in the map
    }
}

// Logs once that this host cannot do its part in the controller's strategy.
static void ask(struct xco_coordinator *c) {
    if (!c->marks.asked) {
        c->marks.asked = true;
        xco_say("the strategy is gcc, and this host does not count what arrives: write "
                "coordinator.marks = \"hide\"");
    }
}

int64_t xco_marks_due(const struct xco_coordinator *c) {
    const bool needed = c->core.joined && c->core.strategy == XCO_GCC && c->present;
    return needed && c->marks.counted ? c->marks.looked_ns + PORT_NS : XCO_NEVER;
}

static struct xco_port count_all(const struct xco_coordinator *c, int64_t now_ns) {
    const struct xco_shim *shim = &c->marks.shim;
    const struct xco_shim_counts others = xco_shim_counts(shim, shim->hosts);
    struct xco_port port = {
        .source = (uint32_t)c->config.attached,
        .target = c->core.config.host,
        .read_ns = (uint64_t)now_ns,
        .packets = others.packets,
        .marks = others.marks,
    };
    for (unsigned host = 0; host < shim->hosts; host++) {
        const struct xco_shim_counts found = xco_shim_counts(shim, host);
        port.packets += found.packets;
        port.marks += found.marks;
        port.coordinated_bytes += found.bytes;
    }
    port.bytes = port.coordinated_bytes + others.bytes;
    return port;
}

bool xco_marks_report(struct xco_coordinator *c, int64_t now_ns, struct xco_ports *ports) {
    if (c->core.joined && c->core.strategy == XCO_GCC && !c->marks.counted) {
        ask(c);
    }
    if (now_ns < xco_marks_due(c)) {
        return false;
    }
    c->marks.looked_ns = now_ns;
    const struct xco_port port = count_all(c, now_ns);
    if (port.packets == c->marks.reported_packets && now_ns < c->marks.reported_ns + IDLE_NS) {
        return false;
    }
    c->marks.reported_packets = port.packets;
    c->marks.reported_ns = now_ns;
    *ports = (struct xco_ports){.count = 1, .entries = {port}};
    memcpy(ports->digest, c->config.nodes_digest, sizeof ports->digest);
    return true;
}

// Returns what came from another host: what this one sends, and the row of all others, do not count.
static struct xco_arrived arrived_from(const struct xco_coordinator *c, unsigned host) {
    const struct xco_shim *shim = &c->marks.shim;
    if (host >= shim->hosts || host == c->core.config.host) {
        return (struct xco_arrived){0};
    }
    const struct xco_shim_counts found = xco_shim_counts(shim, host);
    return (struct xco_arrived){found.packets, found.bytes, found.marks};
}

void xco_marks_read(const struct xco_coordinator *c, struct xco_arrived *arrived) {
    const size_t hosts = c->hygenicc.peers.count;
    for (unsigned host = 0; host < hosts; host++) {
        arrived[host] = arrived_from(c, host);
    }
    const struct xco_shim_counts others = xco_shim_counts(&c->marks.shim, c->marks.shim.hosts);
    arrived[hosts] = (struct xco_arrived){others.packets, others.bytes, others.marks};
}

// Returns what hosts offer to each other: this one to it, and it to this one. Others offer nothing.
static const struct xco_peer *peer_of(const struct xco_coordinator *c, unsigned host) {
    static const struct xco_peer none;
    const bool other = host < c->marks.shim.hosts && host != c->core.config.host;
    return other && host < c->hygenicc.peers.count ? &c->hygenicc.peers.list[host] : &none;
}

void xco_marks_publish(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_stats *statistics = &c->marks.statistics;
    if (!c->marks.counted) {
        return;
    }
    size_t used = 0;
    xco_stats_begin(statistics);
    for (unsigned host = 0; host <= c->marks.shim.hosts; host++) {
        const struct xco_shim_counts found = xco_shim_counts(&c->marks.shim, host);
        const uint64_t row[] = {
            host < c->marks.shim.hosts ? host : XCO_CONTROLLER,
            found.packets,
            found.bytes,
            found.marks,
            peer_of(c, host)->offer_bps,
            peer_of(c, host)->told.offer_bps,
            host < c->marks.shim.hosts && xco_refusals_stands(c, host),
            xco_classifier_refused(&c->places.classifier, (uint16_t)host),
        };
        if (found.packets > 0) {
            memcpy(xco_stats_row(statistics, used++), row, sizeof row);
        }
    }
    statistics->header->rows_used = used;
    xco_stats_end(statistics, (uint64_t)now_ns);
}
