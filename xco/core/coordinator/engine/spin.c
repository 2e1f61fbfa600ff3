// Estimates the 95th percentile of the lateness of wake-ups in steps: one up equals 19 down. A
// single very late wake-up, on a machine that was stopped, moves it by one step.
#include "coordinator/engine/spin.h"

#define BEGIN_NS 30000
#define STEP_NS 100
#define OF_WAKES 20

void xco_spin_begin(struct xco_spin *spin) {
    spin->late_ns = BEGIN_NS;
}

void xco_spin_learn(struct xco_spin *spin, int64_t late_ns, int64_t most_ns) {
    spin->late_ns += late_ns > spin->late_ns ? STEP_NS * (OF_WAKES - 1) : -STEP_NS;
    spin->late_ns = spin->late_ns > most_ns ? most_ns : spin->late_ns;
    spin->late_ns = spin->late_ns < 0 ? 0 : spin->late_ns;
}

int64_t xco_spin_ns(const struct xco_spin *spin, int64_t most_ns) {
    return spin->late_ns < most_ns ? spin->late_ns : most_ns;
}
