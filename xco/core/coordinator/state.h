// The whole state of a running coordinator; part of the coordinator's shell.
#ifndef XCO_COORDINATOR_STATE_H
#define XCO_COORDINATOR_STATE_H

#include "coordinator/config.h"
#include "coordinator/engine/admission.h"
#include "coordinator/engine/backlog.h"
#include "coordinator/engine/chores.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/flows.h"
#include "coordinator/engine/peers.h"
#include "coordinator/engine/spin.h"
#include "coordinator/engine/vms.h"
#include "coordinator/epoch_store.h"
#include "qdisc/classifier.h"
#include "qdisc/gate.h"
#include "qdisc/watch.h"
#include "shim/shim.h"
#include "common/clock.h"
#include "common/keys.h"
#include "common/place_reader.h"
#include "common/stats.h"

// Counts in addition to the core's own.
struct xco_counts {
    uint64_t received, malformed, versions, forged, stale, lower_epochs, epochs_ahead, reports,
        hellos, send_errors;
    uint64_t maps, places_overruled, places_beyond;
    uint64_t gate_errors, remakes, exchange_lost, flows_made, flows_removed, flows_refused,
        unwatched;
    uint64_t gate_changes, gate_late_ns, gate_late_max_ns, gate_set_ns, gate_set_max_ns;
    uint64_t flow_ready_ns, flow_ready_max_ns, looks, wakes;
};

// A message of an epoch that is not durable yet.
struct xco_held {
    bool used;
    int64_t arrived_ns;
    struct xco_message message;
};

// Where a BPF program classifies.
struct xco_places {
    bool stand;
    struct xco_classifier classifier;
    struct xco_gate_state gates[XCO_GATES];
};

// A listed VM on this host.
struct xco_listed {
    unsigned interface; // its index; 0: the VM is not here
    unsigned slot;      // 0: none, it counts as unlisted
    bool queued;        // its packets go to the slot's queues
};

// VMs with weights and guarantees.
struct xco_vms_state {
    struct xco_vms shares;
    struct xco_listed *listed; // as in the configuration
    uint64_t here, beyond;     // with a queue, and without one
    bool told;                 // that there are too many
    struct xco_slot_class classes[XCO_GATES][XCO_SLOTS]; // as in the kernel
    struct xco_walk walk;                                // through them
    int64_t work_ns;                                     // of its next piece
    struct xco_stats statistics;
};

// Congestion marks that arrive, by source.
struct xco_marks {
    bool counted;
    bool refused; // by the kernel
    struct xco_shim shim;
    struct xco_stats statistics;
    uint64_t reported_packets; // in the last PORT
    int64_t reported_ns;
    int64_t looked_ns; // when the counts were last compared with those of the last PORT
    bool asked; // the controller's strategy needs counts, and there are none: logged
};

// Rates between hosts without a controller.
struct xco_hygenicc {
    int socket; // to other coordinators; -1: not used
    struct xco_peers peers;
    struct xco_peer_keys keys;
    struct sockaddr_in6 *places;  // where other hosts listen, by number; port 0: nowhere
    struct xco_arrived *arrived;  // from each, and from all other sources
    struct xco_admission *admissions; // by number; NULL: all connections are admitted
    unsigned refused; // hosts to which connections are refused now
    int64_t looked_ns;            // when the counters were last looked at
    bool writing;                 // others may be due to be written to
    uint64_t sent, malformed, forged;
};

// Map of addresses to hosts.
struct xco_map_state {
    struct xco_place_log here;      // behind this host's bridge
    struct xco_place_log there;     // at other hosts, by the controller
    struct xco_place_reader reader; // of the controller's log
    struct xco_stats located;       // `there`, published
    uint64_t told;                  // the controller's version of `here`
    int64_t joined_ns, sent_ns, anew_ns;
    int64_t sweep_ns; // when to forget addresses that it no longer names; XCO_NEVER
    bool due;         // a message to it is due
};

// The bridge that the gated interface is a port of.
struct xco_bridge {
    int socket;     // receives changes of the forwarding table
    int uplink;     // the gated interface, or the last one; 0: none yet
    uint32_t index; // 0: there is no bridge
    bool asked;     // the whole table is being read
    bool again;     // it must be read
    bool idle;      // the last read found nothing: the socket wakes the loop
    int64_t look_ns, ask_ns; // when to read, and when the table may be requested
    struct xco_place_log seen; // since the request, of what the map has
};

// The switch of zovn on this host.
struct xco_stations {
    int socket;       // to its control socket; -1: it is not being read
    uint32_t place;   // of its table, from which the present answer comes
    uint32_t next;    // where to go on after it; 0: it is the last one
    bool told;        // that it cannot be read
    size_t filled;    // bytes of the answer that are not taken yet
    char text[1024];
    int64_t look_ns, began_ns;
    struct xco_place_log here; // its addresses
    struct xco_place_log seen; // since the reading began, of `here`
};

// Shared by the loop with its guard.
struct xco_shared {
    uint64_t turns; // of the loop
    int interface;  // index of the last gated one; 0: none yet
};

struct xco_coordinator {
    struct xco_coordinator_config config;
    struct xco_shared *shared; // with the guard
    struct xco_core core;
    struct xco_flows flows;
    struct xco_places places;
    struct xco_marks marks;
    struct xco_vms_state vms;
    struct xco_hygenicc hygenicc;
    struct xco_map_state map;
    struct xco_bridge bridge;
    struct xco_stations stations;
    struct xco_gate gate;
    struct xco_origin origin; // of the controller's messages
    struct xco_counts counts;
    struct xco_stats statistics;
    struct xco_host_keys keys;
    uint64_t sequence; // of our last message
    struct xco_epoch_store store;
    struct xco_held held[2]; // a WELCOME, a DIRECTIVE
    bool present;     // our tree is installed on the interface
    bool wide;        // newcomers may use the whole line: no room for more queues
    bool four;        // the kernel has no IPv6
    int messages;     // UDP socket to the controllers
    int watch;        // detects newcomers; -1 while the interface is missing
    int links;        // receives events of interfaces
    int64_t scan_ns;  // of the next scan for new flows; XCO_NEVER: when the watch wakes the loop
    bool watch_idle;  // it saw nothing at the last scan, and wakes the loop at the next packet
    int64_t sweep_ns; // of the next sweep for idle flows
    struct xco_walk sweep; // where it resumes
    struct xco_walk reconciled; // the same for counts compared with the kernel's
    int64_t mend_ns;  // of the next attempt to create the tree
    int mend_error;   // of the last attempt
    int64_t publish_ns;
    struct xco_spin spin;
    struct xco_batch batch;
};

#endif
