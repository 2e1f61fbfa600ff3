// What the controller's core remembers; shared by the files that make it up, and by nobody else.
#ifndef XCO_CONTROLLER_ENGINE_STATE_H
#define XCO_CONTROLLER_ENGINE_STATE_H

#include "controller/engine/calendar.h"
#include "controller/engine/counters.h"
#include "controller/engine/extras.h"
#include "controller/engine/fill.h"
#include "controller/engine/network.h"
#include "controller/engine/settings.h"
#include "controller/engine/timers.h"
#include "scheduler/schedule.h"
#include "common/place_reader.h"
#include "common/wire.h"

// A host's turn to send: from announcing it until it ends, is given up, or is taken away.
struct xco_turn {
    uint32_t destination; // XCO_NONE: no turn
    uint64_t rate_bps;    // the rate that was granted
    uint64_t told_bps;    // the rate that the host is told
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t first_sequence;  // of the first directive that announced it; 0: not sent yet
    uint64_t before_sequence; // the same of the turn that this one renews; 0: none
    uint64_t stamp;           // tells its timer from those of earlier turns
    bool lone;                // no other host wants its links: extended until one does
};

// Time that was taken back of a lone turn: the host may use it until it has the directive.
struct xco_taken {
    uint64_t until_ns; // 0: nothing
    uint64_t sequence; // of the directive that says so; 0: not sent yet
    uint32_t destination;
};

// What a host says of the addresses behind it, and what it has heard of those behind others.
struct xco_claims {
    struct xco_place_log log;
    struct xco_place_reader reader;
    uint64_t heard;     // of our log, what it has
    uint64_t heeded_ns; // when it was heard last
    uint64_t told_ns;
    bool due; // it is to be told
};

// All that is known of a host that has ever spoken.
struct xco_peer {
    struct xco_origin origin;
    bool joined;
    bool coordinated; // its flows are scheduled; else it is open
    bool fallen;      // it keeps to its safe shares, for all that is known
    bool queued;      // waits in the outbox
    bool welcome_due;
    bool plan_due;
    uint8_t welcome_status;
    uint64_t heard_ns;
    uint64_t echo_sent_ns;     // of the last message, host's clock
    uint64_t echo_received_ns; // when that arrived, as the kernel says; heard_ns: when it was read
    struct xco_report report;  // the last
    uint32_t offered[XCO_ENTRIES_MAX]; // the backlog group that the scheduler knows
    size_t offered_count;
    struct xco_turn turn;
    struct xco_taken taken;
    struct xco_directive plan; // what the host is told
    struct xco_directive held; // what it obeys until `plan` starts
    bool cut_due;              // `held` was given an earlier end: to be told before `plan`
    uint64_t stops_ns;         // when its last turn ended or ends
    uint64_t sent_sequence;    // of the last directive
    uint64_t sent_ns;
    uint64_t care_stamp; // tells the timer that looks after the host from those of earlier joins
    uint64_t needed_ns;  // when its flows last crossed a contended link
    uint64_t changed_ns; // when the report arrived that the directive due answers; 0: none
    uint64_t slices;
    uint64_t granted_ns;
    struct xco_claims *claims; // NULL: none yet
};

// A host that the topology does not have, and that is to be told so.
struct xco_stranger {
    bool due;
    uint16_t host;
    uint64_t sent_ns;    // of its message, its clock
    uint64_t arrived_ns; // when that arrived
};

// Of a node of the tree: the hosts below it (or it alone), and those of them that have fallen back.
struct xco_below {
    uint32_t hosts;
    uint32_t fallen;
};

// What is known of a directed link.
struct xco_channel {
    uint32_t seen_host;     // scratch of the contention's census: the host counted last
    uint64_t demand_bps;    // what its senders could send
    uint64_t wanted_bps;    // what all flows offered to the scheduler could send at once
    uint32_t lone;          // turns that are extended, since no other host wants the link
    uint64_t contended_ns;  // when it last was contended
    bool contended;
};

struct xco_control {
    struct xco_control_settings settings;
    struct xco_network network;
    uint32_t *weights; // NULL: all 1
    struct xco_schedule *schedule;
    struct xco_peer **peers; // one a host; NULL: never heard of
    struct xco_channel *channels;
    struct xco_calendar calendar;
    struct xco_below *below; // one a node
    uint32_t fallen;         // hosts that have fallen back
    struct xco_stranger stranger;
    struct xco_place_log where; // which host has which address
    struct xco_timers timers;
    struct xco_fill fill;
    struct xco_extras extras; // of `hybrid`
    struct xco_grant *grants; // room for what one event of the scheduler changes
    struct xco_fill_flow *flows;
    size_t flows_room;
    uint32_t *outbox; // hosts to whom something is due, a ring, each at most once
    uint32_t outbox_first;
    uint32_t outbox_count;
    uint64_t sequence;
    uint64_t stamp;
    uint64_t clock_ns;     // of the scheduler, which must not go back
    uint64_t began_ns;     // the first instant that was seen; 0: none yet
    uint64_t plan_from_ns; // when the plan that is to be computed begins to hold
    uint64_t planned_ns;
    uint64_t plan_visits;  // of flows, by the last plan: what it cost
    uint64_t plan_timed_ns; // the earliest timer that is set for it; 0: none
    bool plan_dirty;
    bool failed;
    struct xco_counters counters;
};

#endif
