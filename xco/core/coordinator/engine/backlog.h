// The backlog of a gate, from counts of bytes that entered and left; pure.
//
// Bytes dropped within the queues enter and never leave. So doubtful counts are compared with the
// kernel's own number, and the difference is kept.
#ifndef XCO_COORDINATOR_ENGINE_BACKLOG_H
#define XCO_COORDINATOR_ENGINE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "qdisc/maps.h"

struct xco_gate_state {
    uint64_t entered, left; // at the last reading
    uint64_t lost;          // entered and never left: dropped inside
    uint64_t backlog;       // at the last count
    int64_t moved_ns;       // when something last left, or it was closed
    int64_t active_ns;      // when something last entered or waited
    bool doubtful;          // the kernel must be asked
};

// Takes a reading of the counts; returns the bytes that wait by them. `open_ns` is when the gate
// opened, or `now_ns` for a closed one. Afterwards `doubtful` says whether to ask the kernel. That
// is so if an open gate passes nothing on although something waits, or if a gate with a correction
// seems empty: that would be believed until something else enters.
uint64_t xco_backlog_read(struct xco_gate_state *state, const struct xco_passage *passage,
                          int64_t open_ns, int64_t now_ns);

// Takes the kernel's number, between two readings of the counts. It is used only if they are equal:
// otherwise bytes that left between them would count twice, and a gate that holds packets would
// seem empty. Returns the bytes that wait.
uint64_t xco_backlog_correct(struct xco_gate_state *state, const struct xco_passage *before,
                             const struct xco_passage *after, uint64_t backlog_bytes);

#endif
