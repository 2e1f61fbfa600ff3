// The controller's counters by name: source of the statistics file and the metrics.
#ifndef XCO_CONTROLLER_ENGINE_COUNTERS_H
#define XCO_CONTROLLER_ENGINE_COUNTERS_H

#include <stdint.h>

#define XCO_CONTROLLER_COUNTERS(X) \
    X(epoch)                       \
    X(epoch_heard)                 \
    X(hosts_joined)                \
    X(hosts_coordinated)           \
    X(links_contended)             \
    X(received_hellos)             \
    X(received_reports)            \
    X(received_leaves)             \
    X(dropped_malformed)           \
    X(dropped_version)             \
    X(dropped_forged)              \
    X(dropped_duplicate)           \
    X(dropped_late)                \
    X(dropped_lower_epoch)         \
    X(dropped_higher_epoch)        \
    X(dropped_epoch_ahead)         \
    X(dropped_not_joined)          \
    X(dropped_unknown_host)        \
    X(dropped_topology)            \
    X(dropped_direction)           \
    X(wrong_destinations)          \
    X(hosts_gone_silent)           \
    X(hosts_fallen_back)           \
    X(events_expired)              \
    X(events_gave_up)              \
    X(events_backlogged)           \
    X(slices_started)              \
    X(slices_preempted)            \
    X(slices_late)                 \
    X(slices_extended)             \
    X(plans_computed)              \
    X(directives_sent)             \
    X(directives_sent_again)       \
    X(welcomes_sent)               \
    X(send_errors)                 \
    X(no_address)                  \
    X(wakes)                       \
    X(wake_late_ns)                \
    X(wake_late_ns_max)            \
    X(exchange_count)              \
    X(exchange_ns)                 \
    X(exchange_ns_max)             \
    X(received_places)             \
    X(maps_sent)                   \
    X(places_known)                \
    X(places_refused)              \
    X(places_beyond)               \
    X(refused_place)               \
    X(refused_claimant)            \
    X(refused_owner)               \
    X(received_ports)              \
    X(ports_known)                 \
    X(ports_begun)                 \
    X(ports_stale)                 \
    X(ports_unknown)               \
    X(ports_impossible)            \
    X(reloads)                     \
    X(reloads_failed)              \
    X(realtime)

#define XCO_CONTROLLER_ROW(X) \
    X(joined)                 \
    X(coordinated)            \
    X(mode)                   \
    X(backlog_flows)          \
    X(backlog_bytes)          \
    X(rate_kbps)              \
    X(granted_bps)            \
    X(silent_ns)              \
    X(fell_back)              \
    X(slices)                 \
    X(granted_ns)

struct xco_counters {
#define XCO_FIELD(name) uint64_t name;
    XCO_CONTROLLER_COUNTERS(XCO_FIELD)
#undef XCO_FIELD
};

enum {
#define XCO_FIELD(name) XCO_ROW_##name,
    XCO_CONTROLLER_ROW(XCO_FIELD)
#undef XCO_FIELD
        XCO_CONTROLLER_COLUMNS,
};

#endif
