// SDN-GCC as published: marks take units of a source's rate, calm periods give them back. Pure.
#include "controller/engine/published.h"

#include <math.h>

#include "common/steps.h"

void xco_source_notified(struct xco_source *source, double marks, uint64_t now_ns, double unit_bps,
                         uint64_t period_ns) {
    if (marks <= 0) {
        return;
    }
    const double since =
        source->congested_ns == 0 ? INFINITY : (double)(now_ns - source->congested_ns);
    const double elapsed = fmax((double)period_ns, since);
    source->rate_bps -= marks * (double)period_ns / elapsed * unit_bps;
    source->congested_ns = now_ns;
}

bool xco_source_updated(struct xco_source *source, uint64_t now_ns, double share_bps,
                        double unit_bps, uint64_t calm_ns) {
    if (now_ns - source->sent_ns >= XCO_STEP_INACTIVE_NS) {
        return false;
    }
    if (source->congested_ns == 0 || now_ns - source->congested_ns >= calm_ns) {
        source->rate_bps = fmin(share_bps, source->rate_bps + unit_bps);
    }
    return true;
}
