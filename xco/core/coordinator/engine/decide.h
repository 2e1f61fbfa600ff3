// Decisions of a local coordinator: the commands that follow from its state, and the next alarm.
#ifndef XCO_COORDINATOR_ENGINE_DECIDE_H
#define XCO_COORDINATOR_ENGINE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/engine/state.h"

#define XCO_COMMANDS (XCO_GATES + 4)

enum xco_command_kind {
    XCO_SET_GATE,      // gate `gate` to `opening`
    XCO_SEND_REPORT,   // as xco_core_report writes it
    XCO_SEND_HELLO,
    XCO_SAY_FALLBACK,  // from now on gates are open at safe shares
    XCO_SAY_CONTROLLED,
};

struct xco_command {
    enum xco_command_kind kind;
    unsigned gate;
    struct xco_opening opening;
};

// When to decide again, and whether a gate's time depends on it.
struct xco_alarm {
    int64_t at_ns;
    bool precise;
};

// Returns the number of commands that follow; they count as carried out.
size_t xco_core_decide(struct xco_core *core, int64_t now_ns,
                       struct xco_command commands[XCO_COMMANDS]);
struct xco_alarm xco_core_alarm(const struct xco_core *core, int64_t now_ns);

// Returns when a gate is set next, as far as known; XCO_NEVER: nothing is announced.
int64_t xco_core_moves(const struct xco_core *core, int64_t now_ns);

#endif
