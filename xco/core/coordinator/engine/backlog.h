// What waits behind a gate, from counts of bytes that entered and left; pure.
//
// What is dropped within the queues enters and never leaves. So the counts are compared with the
// kernel's own number where they are doubtful, and the difference is kept.
#ifndef XCO_COORDINATOR_ENGINE_BACKLOG_H
#define XCO_COORDINATOR_ENGINE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "qdisc/maps.h"

struct xco_gate_state {
    uint64_t entered, left; // as read last
    uint64_t lost;          // entered and never left: dropped within
    uint64_t backlog;       // as counted last
    int64_t moved_ns;       // when something left last, or it was closed
    int64_t active_ns;      // when something entered or waited last
    bool doubtful;          // the kernel is to be asked
};

// Takes a reading of the counts; returns the bytes that wait by them. `open_ns` is when the gate
// opened, or `now_ns` of one that is closed. Afterwards `doubtful` says whether the kernel is to be
// asked: an open gate passes nothing on although something waits, or one with a correction seems
// empty, which would be believed until something else enters.
uint64_t xco_backlog_read(struct xco_gate_state *state, const struct xco_passage *passage,
                          int64_t open_ns, int64_t now_ns);

// Takes the kernel's number, between two readings of the counts. It is used only if they are equal:
// what left between them would be counted twice, and a gate that holds packets would seem empty.
// Returns the bytes that wait.
uint64_t xco_backlog_correct(struct xco_gate_state *state, const struct xco_passage *before,
                             const struct xco_passage *after, uint64_t backlog_bytes);

#endif
