// What a gate's counters say of what waits behind it, and when that is to be asked instead.
#ifndef XCO_COORDINATOR_PASSAGE_H
#define XCO_COORDINATOR_PASSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gate_maps.h"

// What is known of a gate whose packets a BPF program counts.
struct xco_gate_state {
    uint64_t entered, left; // as read last
    uint64_t lost;          // entered and never left: dropped within
    uint64_t since_left;    // what had left at since_ns
    int64_t since_ns;  // from when on something waited; time in which the gate was closed is left out
    int64_t looked_ns; // the last time
    int64_t active_ns; // when something entered or waited last
    int64_t patience_ns; // how long something may wait before it is asked for
};

void xco_passage_begin(struct xco_gate_state *state, int64_t now_ns);

// Takes the counters of a gate that is open at a rate (0: closed); returns what waits, bytes.
uint64_t xco_passage_take(struct xco_gate_state *state, int64_t now_ns,
                          const struct xco_passage *passage, uint64_t open_bps);

// Whether to ask the kernel: a gate that is open leaves most of its rate unused, and yet something
// seems to wait. What was dropped within the queues has entered and never leaves.
bool xco_passage_doubts(const struct xco_gate_state *state, uint64_t open_bps);

// Takes the kernel's answer, given that the counters did not move meanwhile.
void xco_passage_correct(struct xco_gate_state *state, uint64_t backlog_bytes);

// The answer told nothing new, or nothing at all: the next is asked for later.
void xco_passage_defer(struct xco_gate_state *state);

#endif
