// Early release of slices: destinations with a small backlog announce at the start when they end;
// part of the core.
//
// A host that gives up a slice only when its backlog is empty makes all others wait for the news.
// So a destination that did so in its last slices reports at the start of the next one how long it
// will take.
#ifndef XCO_COORDINATOR_ENGINE_DRAIN_H
#define XCO_COORDINATOR_ENGINE_DRAIN_H

#include "coordinator/engine/state.h"

// Notes when a destination's gate opens in the current order, and what it sent until then.
void xco_drain_begin(const struct xco_core *core, struct xco_destination *destination,
                     int64_t now_ns);

// Notes that the running slice is given up because nothing waits.
void xco_drain_note_short(struct xco_core *core, int64_t now_ns);

// Notes how the running slice ended, before the next order replaces it.
void xco_drain_judge_end(struct xco_core *core);

// Gives up the running slice as of the end of its backlog, if the destination uses early release.
void xco_drain_judge(struct xco_core *core);

// Disables early release if at least half the initial backlog arrived while draining: the
// destination could have sent on. Call at the first look after its gate has closed.
void xco_drain_judge_rest(struct xco_destination *destination);

// Whether a destination has a backlog beyond the slice that it releases early.
bool xco_drain_waits(const struct xco_core *core, const struct xco_destination *destination);

#endif
