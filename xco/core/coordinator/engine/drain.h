// Slices of who has little to send end with that, and are given up as they begin; part of the core.
//
// Who gives up a slice when it has nothing left makes all others wait for the news. A destination
// that did so in its last slices says at the beginning of the next how long it will take.
#ifndef XCO_COORDINATOR_ENGINE_DRAIN_H
#define XCO_COORDINATOR_ENGINE_DRAIN_H

#include "coordinator/engine/state.h"

// Notes from when on a destination's gate stands open in the current order, and what it sent until
// then.
void xco_drain_begin(const struct xco_core *core, struct xco_destination *destination,
                     int64_t now_ns);

// Notes that the running slice is given up because nothing waits.
void xco_drain_note_short(struct xco_core *core, int64_t now_ns);

// Notes what follows from how the running slice ended, before the next order takes its place.
void xco_drain_judge_end(struct xco_core *core);

// Gives the running slice up, as of when its backlog has left, if that is the destination's way.
void xco_drain_judge(struct xco_core *core);

// Ends the habit of one to which half as much came while it left as it had to send: it could have
// sent on. At the first look after its gate has closed.
void xco_drain_judge_rest(struct xco_destination *destination);

// Whether a destination waits for more than the slice in which it leaves.
bool xco_drain_waits(const struct xco_core *core, const struct xco_destination *destination);

#endif
