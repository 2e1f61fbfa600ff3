// The controller's clock as a host reads it: the offset from the exchange with the shortest way.
#include "coordinator/engine/clock_offset.h"

#include <stddef.h>

#define LONGEST_NS 1000000000

bool xco_clock_learn(struct xco_clock *clock, const struct xco_exchange *e) {
    int64_t way = (e->heard_ns - e->sent_ns) - (e->answered_ns - e->received_ns);
    if (way < 0 || way > LONGEST_NS || e->sent_ns > e->heard_ns) {
        return false;
    }
    clock->samples[clock->next] = (struct xco_clock_sample){
        .offset_ns = ((e->received_ns - e->sent_ns) + (e->answered_ns - e->heard_ns)) / 2,
        .way_ns = way,
        .taken_ns = e->heard_ns,
    };
    clock->next = (clock->next + 1) % XCO_CLOCK_SAMPLES;
    clock->count += clock->count < XCO_CLOCK_SAMPLES;
    return true;
}

const struct xco_clock_sample *xco_clock_best(const struct xco_clock *clock, int64_t now_ns) {
    const struct xco_clock_sample *best = NULL;
    for (unsigned i = 0; i < clock->count; i++) {
        const struct xco_clock_sample *sample = &clock->samples[i];
        if (now_ns - sample->taken_ns > XCO_CLOCK_AGE_NS) {
            continue;
        }
        if (best == NULL || sample->way_ns < best->way_ns) {
            best = sample;
        }
    }
    return best;
}

void xco_clock_forget(struct xco_clock *clock) {
    clock->count = clock->next = 0;
}
