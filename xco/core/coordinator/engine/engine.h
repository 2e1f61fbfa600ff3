// What a local coordinator decides: which gate is open when, what is reported, when it falls back.
//
// Pure: time is a parameter, nothing is read or sent. Events change the state; xco_core_decide then
// tells the commands that follow from it, and xco_core_alarm when to decide again at the latest.
// Times are nanoseconds of the host's CLOCK_MONOTONIC. Paper, sections 3.2 and 3.5.
#ifndef XCO_COORDINATOR_ENGINE_ENGINE_H
#define XCO_COORDINATOR_ENGINE_ENGINE_H

#include <stddef.h>

#include "coordinator/engine/state.h"

#define XCO_COMMANDS (XCO_GATES + 4)

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
