// What the controller's core is told to do, and what it answers.
#ifndef XCO_CONTROLLER_ENGINE_SETTINGS_H
#define XCO_CONTROLLER_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/message.h"

struct xco_control_settings {
    uint64_t epoch;
    uint64_t epoch_most;   // no controller gives a higher one at the start; it rises with time
    uint64_t slice_ns;     // length of a timeslice (paper: 1 to 10 ms)
    uint64_t lead_ns;      // how long ahead of its start a slice is announced; below slice_ns
    uint64_t guard_ns;     // between the end of a slice and the start of another sender's
    uint64_t silence_ns;   // hosts fall back after so long without a directive
    uint64_t heartbeat_ns; // every host hears a directive so often
    uint64_t drop_ns;      // a host that was silent for so long is scheduled no more
    uint64_t calm_ns;      // a link leaves contention after being calm for so long
    uint64_t threshold_ns; // the scheduler preempts no grant younger than this
    uint64_t patience_ns;  // the scheduler reserves links for who has waited so long
    uint32_t pace_permille; // of a link's capacity that is granted: what is left absorbs bursts
    uint8_t strategy;       // enum xco_strategy
    uint8_t policy;         // enum xco_policy of the scheduler
    bool max_min;           // rates by weighted max-min instead of equal shares
    bool on_demand;         // coordinate only where a link is contended
    uint8_t digest[XCO_DIGEST_BYTES]; // of the topology
};

// What became of a message.
enum xco_verdict {
    XCO_OBEYED = 0,   // its sender's address is good
    XCO_ANSWERED = 1, // not obeyed, but an answer to its sender waits; it may be none of the hosts
    XCO_DROPPED = 2,  // counted, no more
};

struct xco_control;

#endif
