// Busy waiting before a gate's time, as long as the timers of this machine are late.
#ifndef XCO_COORDINATOR_ENGINE_SPIN_H
#define XCO_COORDINATOR_ENGINE_SPIN_H

#include <stdint.h>

struct xco_spin {
    int64_t late_ns; // by which 19 of 20 wake-ups come, as estimated
};

void xco_spin_begin(struct xco_spin *spin);

// A timer woke the loop so late. No more than `most_ns` is learnt.
void xco_spin_learn(struct xco_spin *spin, int64_t late_ns, int64_t most_ns);

// How long to wait awake, at most `most_ns`.
int64_t xco_spin_ns(const struct xco_spin *spin, int64_t most_ns);

#endif
