// Events of a local coordinator, and its reports.
//
// Pure: time is a parameter, nothing is read or sent. Events change the state; xco_core_decide
// (coordinator/engine/decide.h) then returns the commands that follow from it. Times are
// nanoseconds of the host's CLOCK_MONOTONIC. Paper, sections 3.2 and 3.5.
#ifndef XCO_COORDINATOR_ENGINE_ENGINE_H
#define XCO_COORDINATOR_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/engine/state.h"

// Initialises the state: fallen back until the first directive.
void xco_core_begin(struct xco_core *core, const struct xco_core_config *config, int64_t now_ns);

// Whether a controller's message can answer this coordinator: recordings from an earlier run do
// not. Only a directive may echo nothing, and only before the first exchange.
bool xco_core_answers(const struct xco_core *core, int64_t now_ns,
                      const struct xco_message *message);

// Events. Messages must be answers, authentic and fresh (xco_origin_accept).
void xco_core_welcome(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                      const struct xco_welcome *welcome);
void xco_core_directive(struct xco_core *core, int64_t now_ns, const struct xco_header *header,
                        const struct xco_directive *directive);
// A gate for a destination was created, closed, or removed; -1: no room for another.
int xco_core_add(struct xco_core *core, int64_t now_ns, uint16_t host, const struct xco_way *way);
void xco_core_remove(struct xco_core *core, unsigned gate);
bool xco_core_has_room(const struct xco_core *core);
// Something entered an empty gate: look at it.
void xco_core_stir(struct xco_core *core, int64_t now_ns, unsigned gate);
// The kernel's numbers of a gate: its backlog, and all bytes sent.
void xco_core_look(struct xco_core *core, int64_t now_ns, unsigned gate, uint32_t backlog_bytes,
                   uint64_t sent_bytes);
// All gates were lost, with their backlog; or recreated, closed.
void xco_core_lost(struct xco_core *core);
void xco_core_remade(struct xco_core *core);

// Whether a destination gets so much that it can help to congest a link without a backlog.
bool xco_core_is_fast(const struct xco_core *core, const struct xco_destination *destination);

// Whether no directive has arrived for too long.
bool xco_core_silent(const struct xco_core *core, int64_t now_ns);

// Whether to look at a gate now.
bool xco_core_due(const struct xco_core *core, int64_t now_ns, unsigned gate);

// Writes the report of the backlog and of a slice given up.
void xco_core_report(const struct xco_core *core, struct xco_report *report);

#endif
