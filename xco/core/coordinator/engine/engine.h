// What a local coordinator decides: the events, and what is reported.
//
// Pure: time is a parameter, nothing is read or sent. Events change the state; xco_core_decide
// (coordinator/engine/decide.h) then tells the commands that follow from it.
// Times are nanoseconds of the host's CLOCK_MONOTONIC. Paper, sections 3.2 and 3.5.
#ifndef XCO_COORDINATOR_ENGINE_ENGINE_H
#define XCO_COORDINATOR_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/engine/state.h"

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

// Whether a destination gets so much that it can congest a link with others, though nothing waits.
bool xco_core_is_fast(const struct xco_core *core, const struct xco_destination *destination);

// Whether no directive has come for too long.
bool xco_core_silent(const struct xco_core *core, int64_t now_ns);

// Whether to look at a gate now.
bool xco_core_due(const struct xco_core *core, int64_t now_ns, unsigned gate);

// Writes the report that says what waits and what was given up.
void xco_core_report(const struct xco_core *core, struct xco_report *report);

#endif
