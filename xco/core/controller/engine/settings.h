// Settings of the controller's core, and its results.
#ifndef XCO_CONTROLLER_ENGINE_SETTINGS_H
#define XCO_CONTROLLER_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/message.h"

struct xco_control_settings {
    uint64_t epoch;
    uint64_t epoch_most;   // limit for epochs at the start; rises with time
    uint64_t slice_ns;     // length of a timeslice (paper: 1 to 10 ms)
    uint64_t lead_ns;      // how long before its start a slice is announced; below slice_ns
    uint64_t guard_ns;     // gap between the end of a slice and the start of another sender's
    uint64_t silence_ns;   // hosts fall back after this long without a directive
    uint64_t heartbeat_ns; // longest interval between directives to a host
    uint64_t drop_ns;      // a host silent for this long is no longer scheduled
    uint64_t calm_ns;      // a link leaves contention after this long without it
    uint64_t threshold_ns; // the scheduler preempts no grant younger than this
    uint64_t patience_ns;  // the scheduler reserves links for flows that have waited this long
    uint32_t pace_permille; // granted part of a link's capacity: the rest absorbs bursts
    uint8_t strategy;       // enum xco_strategy
    uint8_t policy;         // enum xco_policy of the scheduler
    bool max_min;           // rates by weighted max-min instead of equal shares
    bool published;         // `gcc` by the published law instead of the fair one
    bool on_demand;         // coordinate only where a link is contended
    uint8_t digest[XCO_DIGEST_BYTES]; // of the hosts' names
    uint8_t nodes_digest[XCO_DIGEST_BYTES]; // of all nodes' names
};

// Whether a strategy grants timeslices; else every host gets rates.
static inline bool xco_grants_slices(uint8_t strategy) {
    return strategy == XCO_TIMESLICE || strategy == XCO_HYBRID;
}

// Outcome of a message.
enum xco_receive_result {
    XCO_OBEYED = 0,   // its sender's address is valid
    XCO_ANSWERED = 1, // not obeyed, but an answer to its sender waits; the sender may be unknown
    XCO_DROPPED = 2,  // only counted
};

struct xco_control;

#endif
