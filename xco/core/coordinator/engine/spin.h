// Busy waiting before a gate's time, for as long as this machine's timers are late.
#ifndef XCO_COORDINATOR_ENGINE_SPIN_H
#define XCO_COORDINATOR_ENGINE_SPIN_H

#include <stdint.h>

struct xco_spin {
    int64_t late_ns; // estimated lateness of 19 of 20 wake-ups
};

void xco_spin_begin(struct xco_spin *spin);

// Takes the lateness of a timer's wake-up, limited to `most_ns`.
void xco_spin_learn(struct xco_spin *spin, int64_t late_ns, int64_t most_ns);

// Returns how long to wait busily, at most `most_ns`.
int64_t xco_spin_ns(const struct xco_spin *spin, int64_t most_ns);

#endif
