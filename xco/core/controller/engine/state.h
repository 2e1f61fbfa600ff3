// The state of the controller's core; private to its files.
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
#include "common/budget.h"
#include "common/place_reader.h"
#include "common/wire.h"

// A host's turn to send: from its announcement until it ends, is given up, or is taken away.
struct xco_turn {
    uint32_t destination; // XCO_NONE: no turn
    uint64_t rate_bps;    // the rate that was granted
    uint64_t told_bps;    // the rate announced to the host
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t first_sequence;  // of the first directive that announced it; 0: not sent yet
    uint64_t before_sequence; // the same of the turn that this one renews; 0: none
    uint64_t stamp;           // distinguishes its timer from those of earlier turns
    bool lone;                // no other host wants its links: extended until one does
};

// Time taken back from a lone turn: the host may use it until it has received the directive.
struct xco_taken {
    uint64_t until_ns; // 0: nothing
    uint64_t sequence; // of the directive that takes it back; 0: not sent yet
    uint32_t destination;
};

// A host's report of the addresses behind it, and what it has heard of those behind others.
struct xco_claims {
    struct xco_place_log log;
    struct xco_place_reader reader;
    uint64_t heard;     // its version of our log
    uint64_t heeded_ns; // time of the last message taken
    uint64_t told_ns;
    bool due; // a message to it is due
};

// A pair of hosts, by the reports of the one that sends.
struct xco_pair {
    uint64_t reported_ns; // last
    uint64_t waited_ns;   // when something last waited, or the pair was new
    uint64_t demand_bps;  // while nothing waits
    uint16_t destination;
};

// State of a host that has ever sent a message.
struct xco_peer {
    struct xco_origin origin;
    bool joined;
    bool coordinated; // its flows are scheduled; else it is open
    bool fallen;      // as far as known, it keeps to its safe shares
    bool queued;      // waits in the outbox
    bool welcome_due;
    bool plan_due;
    uint8_t welcome_status;
    uint64_t heard_ns;
    uint64_t echo_sent_ns;     // of the last message, host's clock
    uint64_t echo_received_ns; // its arrival, by the kernel; heard_ns: when it was read
    struct xco_report report;  // the last report
    struct xco_pair pairs[XCO_ENTRIES_MAX]; // of this and earlier ones
    size_t pair_count;
    uint32_t offered[XCO_ENTRIES_MAX]; // the backlog group known to the scheduler
    size_t offered_count;
    struct xco_turn turn;
    struct xco_taken taken;
    struct xco_directive plan; // the announced directive
    struct xco_directive held; // what it obeys until `plan` starts
    bool cut_due;              // `held` was given an earlier end: send it before `plan`
    uint64_t stops_ns;         // when its last turn ended or ends
    uint64_t sent_sequence;    // of the last directive
    uint64_t sent_ns;
    uint64_t care_stamp; // distinguishes the host's supervision timer from those of earlier joins
    uint64_t needed_ns;  // when its flows last crossed a contended link
    uint64_t changed_ns; // arrival of the report that the next directive answers; 0: none
    uint64_t slices;
    uint64_t granted_ns;
    struct xco_claims *claims; // NULL: none yet
    struct xco_sources *sources; // by the published law of `gcc`; NULL: none yet
};

// An answer to a sender that is no host of the topology: an unknown host, or a port agent.
struct xco_answer {
    bool due;
    uint8_t status; // enum xco_welcome_status
    uint16_t to;
    uint64_t sent_ns;    // send time of its message, by its clock
    uint64_t arrived_ns; // its arrival
};

// Of a node of the tree: the number of hosts at and below it, and of those that have fallen back.
struct xco_below {
    uint32_t hosts;
    uint32_t fallen;
};

// State of a directed link.
struct xco_channel {
    uint32_t seen_host;     // scratch of the contention census: the host counted last
    uint64_t demand_bps;    // what its senders could send
    uint64_t wanted_bps;    // sum of all flows offered to the scheduler
    uint32_t lone;          // number of turns extended since no other host wants the link
    uint64_t contended_ns;  // when it last was contended
    bool contended;
};

// What is known of the port at the start of a directed link.
struct xco_port_state {
    struct xco_port last; // the last counters
    struct xco_budget budget;
    uint64_t sequence;       // of the agent's last message
    uint64_t heard_ns;       // 0: never
    uint64_t by_host_ns;     // when the host behind it last reported it; 0: never
    uint64_t sent_bytes;     // by coordinated hosts over the link, by their own counters
    uint64_t sent_then;      // the same at the last counters
    double new_marks;        // since the last period of the published law ended
    uint64_t shared_bps;     // what the rates were computed with; 0: nothing yet
};

struct xco_control {
    struct xco_control_settings settings;
    struct xco_network network;
    uint32_t *weights; // NULL: all 1
    struct xco_schedule *schedule;
    struct xco_peer **peers; // one per host; NULL: never heard
    struct xco_channel *channels;
    struct xco_calendar calendar;
    struct xco_below *below; // one per node
    uint32_t fallen;         // number of hosts that have fallen back
    struct xco_answer answer;
    struct xco_port_state *ports; // one per directed link
    struct xco_place_log where; // map of addresses to hosts
    uint32_t whole;             // hosts that it names as having reported all of theirs
    struct xco_timers timers;
    struct xco_fill fill;
    struct xco_extras extras; // for `hybrid`
    struct xco_grant *grants; // room for the changes of one scheduler event
    struct xco_fill_flow *flows;
    size_t flows_room;
    uint32_t *outbox; // hosts with messages due, a ring, each at most once
    uint32_t outbox_first;
    uint32_t outbox_count;
    uint64_t sequence;
    uint64_t stamp;
    uint64_t clock_ns;     // of the scheduler, which must not go back
    uint64_t began_ns;     // the first instant seen; 0: none yet
    uint64_t now_ns;       // the last one
    uint64_t plan_from_ns; // when the next plan takes effect
    uint64_t planned_ns;
    uint64_t plan_visits;  // steps over flows in the last plan: its cost
    uint64_t plan_timed_ns; // the earliest timer set for it; 0: none
    uint64_t turned_ns;     // when a period of the published law ended
    bool turning;           // another one will
    bool plan_dirty;
    bool failed;
    struct xco_counters counters;
};

#endif
