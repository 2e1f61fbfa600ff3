// What a local coordinator remembers; shared by the files that decide.
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

// The way to a destination: what may be sent over each of its links without a controller.
struct xco_way {
    unsigned count; // 0: only what fits the line
    uint16_t links[XCO_WAY_LINKS];
    uint64_t shares_bps[XCO_WAY_LINKS];
};

struct xco_core_config {
    uint16_t host;
    uint64_t fallback_open; // 1: without directives gates stand open at the line's rate
    bool paced;            // gates only pace: they cannot close, and obey no slices
    uint64_t line_bps;     // of the host's link
    uint64_t outside_bps;  // of it, for all that goes to no host of the topology
    uint64_t pace_ppm;     // gates open at this part of what is granted, so that no queue stands
    int64_t guard_ns;      // a slice's gates close so long before its end
    int64_t hysteresis_ns; // so long nothing may wait before a slice is given up
    int64_t heartbeat_ns;  // between reports without news
    int64_t report_gap_ns; // between reports with news
    int64_t silence_ns;    // without a directive for so long: fall back; WELCOME may change it
    int64_t hello_ns;      // between attempts to join
    int64_t poll_open_ns;  // between looks at a slice's open gates
    int64_t poll_closed_ns;
};

// A destination with a gate.
struct xco_destination {
    bool used;
    bool reported;       // as backlogged, by the last report
    bool reported_fast;  // as fast (xco_core_is_fast), by the last report
    uint16_t host;       // XCO_CONTROLLER: outside the topology
    struct xco_way way;
    uint64_t applied_bps; // how its gate stands; 0: closed
    int64_t closes_ns;    // until when it was opened; XCO_NEVER: no end is known
    uint32_t backlog_bytes;
    uint64_t sent_bytes;
    int64_t empty_since_ns; // XCO_NEVER: not empty, or not looked at since it opened
    int64_t look_ns;        // when to look at it again
    int64_t looked_ns;      // the last time
    int64_t opened_ns;      // when its gate opened last
    uint64_t opened_bytes;  // what it had sent until then, as seen last
    uint64_t leaves_bytes;  // what it will have sent when it has left its slice; 0: it does not
    unsigned short_turns;   // slices in a row, two at most, in which it had nothing left to send
    int64_t rate_since_ns;  // of the rate's measurement
    uint64_t rate_since_bytes;
    uint64_t rate_bps;
};

// A directive in the host's time.
struct xco_order {
    bool known;
    bool given_up;
    bool leaving; // a slice that ends with what waited when it began, and was given up then
    uint8_t mode; // enum xco_mode
    uint16_t count;
    uint64_t sequence;
    int64_t start_ns;
    int64_t end_ns; // XCO_NEVER: until the next
    int64_t shift_ns; // from the host's time to the controller's
    struct xco_permit permits[XCO_ENTRIES_MAX];
};

struct xco_core_counts {
    uint64_t directives, misdirected, unplaced, unsliced, welcomes, refusals, slices, given_up, fallbacks;
};

struct xco_core {
    struct xco_core_config config;
    struct xco_clock clock;
    struct xco_destination destinations[XCO_GATES];
    struct xco_order current, next;
    bool joined, fell_back, report_wanted;
    bool lost; // the queues do not stand: traffic is unshaped
    bool more; // more destinations than there are gates
    uint8_t refused; // enum xco_welcome_status: why this controller does not have us
    uint64_t epoch, heard_sequence, gave_up_sequence;
    int64_t sliced_ns; // when a slice was refused last; XCO_NEVER: none was
    uint64_t free_ns; // when what was given up ends, controller's clock; 0: at once
    int64_t advance_ns; // a slice's gates are set so long before it begins: what setting takes
    int64_t began_ns;
    int64_t valid_ns;   // of the last directive that was obeyed
    int64_t report_ns;  // of the last report
    int64_t hello_ns;   // of the last attempt to join
    struct xco_core_counts counts;
};

// The gate of a destination; -1: it has none.
int xco_core_find(const struct xco_core *core, uint16_t host);

#endif
