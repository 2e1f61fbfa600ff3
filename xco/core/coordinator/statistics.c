// The coordinator's published statistics; part of its shell.
#include "coordinator/statistics.h"

#include <string.h>

#include <arpa/inet.h>

#include "coordinator/engine/allowances.h"
#include "coordinator/marks.h"
#include "coordinator/refusals.h"
#include "coordinator/vms.h"

#define PUBLISH_NS 100000000

enum mode {
    MODE_FALLBACK,
    MODE_CLOSED,
    MODE_SLICE,
    MODE_RATE,
    MODE_OPEN,
    MODE_UNSHAPED,
    MODE_HYGENICC,
};

static const char *const FIELDS[] = {
    "mode",
    "host",
    "joined",
    "epoch",
    "sequence",
    "directives",
    "misdirected",
    "unplaced",
    "malformed",
    "versions",
    "forged",
    "stale",
    "lower_epochs",
    "epochs_ahead",
    "reports",
    "hellos",
    "send_errors",
    "slices",
    "given_up",
    "fallbacks",
    "refusals",
    "silence_ns",
    "clock_offset_ns",
    "clock_way_ns",
    "gate_changes",
    "gate_set_ns",
    "gate_set_max_ns",
    "gate_late_ns",
    "gate_late_max_ns",
    "gate_errors",
    "remakes",
    "exchange_lost",
    "flows",
    "flows_made",
    "flows_removed",
    "flows_refused",
    "flow_ready_ns",
    "flow_ready_max_ns",
    "looks",
    "wakes",
    "unwatched",
    "received",
    "classifier",
    "unlisted_bytes",
    "maps",
    "places_here",
    "places_there",
    "places_overruled",
    "places_beyond",
    "spin_ns",
    "paced",
    "unsliced",
    "dropped_bytes",
    "peer_sent",
    "peer_taken",
    "peer_late",
    "peer_forged",
    "peer_malformed",
    "peer_differing",
    "peer_misdirected",
    "offers",
    "shared_bps",
    "destinations_refused",
    "attempts_refused",
    "vms",
    "vms_beyond",
};
static const char *const COLUMNS[] = {
    "source_high", "source_low", "destination_high", "destination_low",
    "host",        "open_bps",   "sent_bytes",       "backlog_bytes",
};

int xco_coordinator_publish_open(struct xco_coordinator *c) {
    if (c->config.statistics[0] == '\0') {
        return 0;
    }
    return xco_stats_open(&c->statistics, c->config.statistics,
                          &(struct xco_stats_layout){
                              .field_names = FIELDS,
                              .fields = sizeof FIELDS / sizeof FIELDS[0],
                              .column_names = COLUMNS,
                              .columns = sizeof COLUMNS / sizeof COLUMNS[0],
                              .rows = XCO_FLOWS,
                          });
}

static enum mode mode_of(const struct xco_coordinator *c) {
    if (!c->present) {
        return MODE_UNSHAPED;
    }
    if (c->core.fell_back) {
        return c->core.config.hygenicc ? MODE_HYGENICC : MODE_FALLBACK;
    }
    return c->core.current.known ? MODE_CLOSED + c->core.current.mode : MODE_CLOSED;
}

static uint64_t unlisted_bytes(const struct xco_coordinator *c) {
    return c->core.destinations[XCO_OUTSIDE].sent_bytes;
}

// Where a program classifies, all traffic to one host is one flow.
static uint64_t flows(const struct xco_coordinator *c) {
    uint64_t gates = 0;
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        gates += c->core.destinations[gate].used;
    }
    return c->places.stand ? gates : c->flows.count;
}

static void write_values(struct xco_coordinator *c, int64_t now_ns) {
    const struct xco_core *core = &c->core;
    const struct xco_counts *n = &c->counts;
    const struct xco_peers *peers = &c->hygenicc.peers;
    const struct xco_clock_sample *clock = xco_clock_best(&core->clock, now_ns);
    const uint64_t values[] = {
        mode_of(c),
        core->config.host,
        core->joined,
        c->origin.epoch,
        core->heard_sequence,
        core->counts.directives,
        core->counts.misdirected,
        core->counts.unplaced,
        n->malformed,
        n->versions,
        n->forged,
        n->stale,
        n->lower_epochs,
        n->epochs_ahead,
        n->reports,
        n->hellos,
        n->send_errors,
        core->counts.slices,
        core->counts.given_up,
        core->counts.fallbacks,
        core->counts.refusals,
        (uint64_t)core->config.silence_ns,
        (uint64_t)(clock == NULL ? 0 : clock->offset_ns),
        (uint64_t)(clock == NULL ? 0 : clock->way_ns),
        n->gate_changes,
        n->gate_set_ns,
        n->gate_set_max_ns,
        n->gate_late_ns,
        n->gate_late_max_ns,
        n->gate_errors,
        n->remakes,
        n->exchange_lost,
        flows(c),
        n->flows_made,
        n->flows_removed,
        n->flows_refused,
        n->flow_ready_ns,
        n->flow_ready_max_ns,
        n->looks,
        n->wakes,
        n->unwatched,
        n->received,
        c->places.stand,
        unlisted_bytes(c),
        n->maps,
        c->map.here.known,
        c->map.there.known,
        n->places_overruled,
        n->places_beyond,
        (uint64_t)xco_spin_ns(&c->spin, (int64_t)c->config.spin_ns),
        c->config.tree.paced,
        core->counts.unsliced,
        xco_classifier_dropped(&c->places.classifier),
        c->hygenicc.sent,
        peers->counts.taken,
        peers->counts.late,
        c->hygenicc.forged,
        c->hygenicc.malformed,
        peers->counts.differing,
        peers->counts.misdirected,
        xco_allowances_offered(core),
        peers->shared_bps,
        xco_refusals_hosts(c),
        xco_refusals_attempts(c),
        c->vms.here,
        c->vms.beyond,
    };
    _Static_assert(sizeof values / sizeof values[0] == sizeof FIELDS / sizeof FIELDS[0],
                   "a name for each value");
    memcpy(c->statistics.values, values, sizeof values);
}

static uint64_t half(const struct in6_addr *address, int word) {
    return (uint64_t)ntohl(address->s6_addr32[word]) << 32 | ntohl(address->s6_addr32[word + 1]);
}

static size_t write_gates(struct xco_coordinator *c) {
    size_t used = 0;
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        const struct xco_destination *destination = &c->core.destinations[gate];
        const uint64_t row[] = {
            0,
            0,
            0,
            0,
            destination->host,
            destination->applied_bps,
            destination->sent_bytes,
            destination->backlog_bytes,
        };
        if (destination->used && (gate != XCO_OUTSIDE || destination->sent_bytes > 0)) {
            memcpy(xco_stats_row(&c->statistics, used++), row, sizeof row);
        }
    }
    return used;
}

static size_t write_flows(struct xco_coordinator *c) {
    size_t used = 0;
    for (unsigned flow = 0; flow < XCO_FLOWS; flow++) {
        const struct xco_v2v_flow *entry = &c->flows.table[flow];
        if (!entry->used) {
            continue;
        }
        const struct xco_destination *destination = &c->core.destinations[entry->gate];
        const uint64_t row[] = {
            half(&entry->pair.source, 0),
            half(&entry->pair.source, 2),
            half(&entry->pair.destination, 0),
            half(&entry->pair.destination, 2),
            destination->host,
            destination->applied_bps,
            entry->sent_bytes,
            entry->backlog_bytes,
        };
        memcpy(xco_stats_row(&c->statistics, used++), row, sizeof row);
    }
    return used;
}

void xco_coordinator_publish(struct xco_coordinator *c, int64_t now_ns) {
    c->publish_ns = now_ns + PUBLISH_NS;
    xco_marks_publish(c, now_ns);
    xco_vms_publish(c, now_ns);
    if (c->statistics.header == NULL) {
        return;
    }
    xco_stats_begin(&c->statistics);
    write_values(c, now_ns);
    c->statistics.header->rows_used = c->places.stand ? write_gates(c) : write_flows(c);
    xco_stats_end(&c->statistics, (uint64_t)now_ns);
}
