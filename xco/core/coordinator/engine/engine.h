// What a local coordinator decides: which gate is open when, what is reported, when it falls back.
//
// Pure: time is a parameter, nothing is read or sent. Events change the state; xco_core_decide then
// tells the commands that follow from it, and xco_core_alarm when to decide again at the latest.
// Times are nanoseconds of the host's CLOCK_MONOTONIC. Paper, sections 3.2 and 3.5.
#ifndef XCO_COORDINATOR_ENGINE_ENGINE_H
#define XCO_COORDINATOR_ENGINE_ENGINE_H

#include "coordinator/engine/clock_offset.h"
#include "qdisc/layout.h"
#include "common/wire.h"

#define XCO_NEVER INT64_MAX
#define XCO_WAY_LINKS 16
#define XCO_COMMANDS (XCO_GATES + 4)

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

enum xco_command_kind {
    XCO_SET_GATE,      // gate `gate` to `rate_bps` for `lasts_ns`; 0: close; lasts 0: for good
    XCO_SEND_REPORT,   // as xco_core_report writes it
    XCO_SEND_HELLO,
    XCO_SAY_FALLBACK,  // gates stand open at safe shares from now on
    XCO_SAY_CONTROLLED,
};

struct xco_command {
    enum xco_command_kind kind;
    unsigned gate;
    uint64_t rate_bps;
    int64_t lasts_ns;
    bool goes_on; // it stood open at this rate
};

// When to decide again, and whether a gate's time depends on it.
struct xco_alarm {
    int64_t at_ns;
    bool precise;
};

// Begins outside the controller's care: fallen back until the first directive.
void xco_core_begin(struct xco_core *core, const struct xco_core_config *config, int64_t now_ns);

// Whether a message of the controller can be an answer to this coordinator: recorded ones of a run
// before it are not. Only a directive may echo nothing, and only before the first exchange.
bool xco_core_answers(const struct xco_core *core, int64_t now_ns,
                      const struct xco_message *message);

// Events. Messages are those that answer, are authentic and fresh (xco_origin_accept).
void xco_core_welcome(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                      const struct xco_welcome *welcome);
void xco_core_directive(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                        const struct xco_directive *directive);
// A gate was made for a destination, closed, or removed; -1: there is no room for another.
int xco_core_add(struct xco_core *core, int64_t now_ns, uint16_t host,
                 const struct xco_way *way);
void xco_core_remove(struct xco_core *core, unsigned gate);
bool xco_core_has_room(const struct xco_core *core);
int xco_core_find(const struct xco_core *core, uint16_t host);
// Something entered an empty gate: it is to be looked at.
void xco_core_stir(struct xco_core *core, int64_t now_ns, unsigned gate);
// The kernel told what waits behind a gate, and what it has sent in all.
void xco_core_look(struct xco_core *core, int64_t now_ns, unsigned gate, uint32_t backlog_bytes,
                   uint64_t sent_bytes);
// All gates were lost, with what waited behind them; or made anew, closed.
void xco_core_lost(struct xco_core *core);
void xco_core_remade(struct xco_core *core);

// Returns how many commands follow; they count as carried out.
size_t xco_core_decide(struct xco_core *core, int64_t now_ns,
                       struct xco_command commands[XCO_COMMANDS]);
struct xco_alarm xco_core_alarm(const struct xco_core *core, int64_t now_ns);

// When a gate is to be set next, as far as is known; XCO_NEVER: nothing is announced.
int64_t xco_core_moves(const struct xco_core *core, int64_t now_ns);

// Whether a destination gets so much that it can congest a link with others, though nothing waits.
bool xco_core_is_fast(const struct xco_core *core, const struct xco_destination *destination);

// Whether no directive has come for too long.
bool xco_core_silent(const struct xco_core *core, int64_t now_ns);

// Whether to look at a gate now.
bool xco_core_due(const struct xco_core *core, int64_t now_ns, unsigned gate);

// Writes the report that says what waits and what was given up.
void xco_core_report(const struct xco_core *core, struct xco_report *report);

#endif
