// The state of a local coordinator; shared by the files that decide.
//
// Times are nanoseconds of the host's CLOCK_MONOTONIC.
#ifndef XCO_COORDINATOR_ENGINE_STATE_H
#define XCO_COORDINATOR_ENGINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/engine/clock_offset.h"
#include "qdisc/layout.h"
#include "common/message.h"

#define XCO_NEVER INT64_MAX
#define XCO_WAY_LINKS 16

// The way to a destination: the safe rate of each of its links without a controller.
struct xco_way {
    unsigned count; // 0: only the line limits
    uint16_t links[XCO_WAY_LINKS];
    uint64_t shares_bps[XCO_WAY_LINKS];
};

struct xco_core_config {
    uint16_t host;
    uint64_t fallback_open; // 1: without directives gates open at the line's rate
    uint64_t hygenicc;      // 1: without directives they open at what other hosts offer
    bool paced;            // gates only pace: they cannot close, and obey no slices
    uint64_t line_bps;     // of the host's link
    uint64_t outside_bps;  // part of it for all traffic to hosts outside the topology
    uint64_t pace_ppm;     // gates open at this part of the grant, so that no queue builds up
    int64_t guard_ns;      // a slice's gates close this long before its end
    int64_t hysteresis_ns; // a slice is given up after this long without a backlog
    int64_t heartbeat_ns;  // between reports without news
    int64_t report_gap_ns; // between reports with news
    int64_t silence_ns;    // fall back after this long without a directive; WELCOME may change it
    int64_t hello_ns;      // between attempts to join
    int64_t poll_open_ns;  // between checks of a slice's open gates
    int64_t poll_closed_ns;
};

// A destination with a gate.
struct xco_destination {
    bool used;
    bool reported;       // as backlogged, in the last report
    bool reported_fast;  // as fast (xco_core_is_fast), in the last report
    uint16_t reported_weight, reported_mbps; // of its VMs, in the last report
    uint16_t host;       // XCO_CONTROLLER: outside the topology
    struct xco_way way;
    uint64_t applied_bps; // the gate's setting; 0: closed
    int64_t closes_ns;    // end of its opening; XCO_NEVER: unknown
    bool lasts;           // the gate's setting is an opening without an end
    uint32_t backlog_bytes;
    uint64_t sent_bytes;
    int64_t empty_since_ns; // XCO_NEVER: not empty, or not checked since it opened
    int64_t look_ns;        // when to check it again
    int64_t looked_ns;      // the last check
    int64_t opened_ns;      // when its gate last opened
    uint64_t opened_bytes;  // bytes it had sent by then, as last seen
    uint64_t leaves_bytes;  // bytes it will have sent at its early release; 0: none
    unsigned short_turns;   // slices in a row, at most two, that ended without a backlog
    int64_t rate_since_ns;  // of the rate's measurement
    uint64_t rate_since_bytes;
    uint64_t rate_bps;
    uint64_t allowed_bps; // without a controller, by what other hosts offer; 0: the safe share
    uint16_t weight;         // of the VMs that lately sent to it; 0: no VM is listed
    uint16_t guarantee_mbps; // what those VMs are promised here, as far as they use it
};

// A directive in the host's time.
struct xco_order {
    bool known;
    bool given_up;
    bool leaving; // an early-released slice, for the backlog at its start
    uint8_t mode; // enum xco_mode
    uint16_t count;
    uint64_t sequence;
    int64_t start_ns;
    int64_t end_ns; // XCO_NEVER: until the next
    int64_t shift_ns; // from the host's time to the controller's
    struct xco_permit permits[XCO_ENTRIES_MAX];
};

struct xco_core_counts {
    uint64_t directives, misdirected, unplaced, unsliced, welcomes, refusals, slices, given_up,
        fallbacks;
};

struct xco_core {
    struct xco_core_config config;
    struct xco_clock clock;
    struct xco_destination destinations[XCO_GATES];
    struct xco_order current, next;
    bool joined, fell_back, report_wanted;
    bool lost; // the queues are gone: traffic is unshaped
    bool more; // more destinations than there are gates
    uint8_t refused; // enum xco_welcome_status: why this controller refuses us
    uint8_t strategy; // enum xco_strategy, of the last WELCOME
    uint64_t epoch, heard_sequence, gave_up_sequence;
    int64_t sliced_ns; // when a slice was last refused; XCO_NEVER: never
    uint64_t free_ns; // end of the slice given up, controller's clock; 0: immediately
    int64_t advance_ns; // lead for setting a slice's gates: the time that setting takes
    int64_t began_ns;
    int64_t valid_ns;   // of the last directive obeyed
    int64_t report_ns;  // of the last report
    int64_t hello_ns;   // of the last attempt to join
    struct xco_core_counts counts;
};

// Returns the gate of a destination; -1: it has none.
int xco_core_find(const struct xco_core *core, uint16_t host);

#endif
