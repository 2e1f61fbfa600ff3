// Compares directives: what one permits, and what it permits beyond another one.
#include "controller/engine/directive.h"

uint64_t xco_directive_rate_at(const struct xco_directive *plan, uint16_t destination,
                               uint64_t at_ns) {
    if (plan->mode == XCO_OPEN) {
        return UINT64_MAX;
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->entries[i].destination == destination) {
            return plan->end_ns != 0 && plan->end_ns <= at_ns ? 0 : plan->entries[i].rate_bps;
        }
    }
    return 0;
}

void xco_directive_clip(struct xco_directive *plan, const struct xco_directive *before,
                        uint64_t at_ns) {
    uint16_t kept = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct xco_permit entry = plan->entries[i];
        const uint64_t rate = xco_directive_rate_at(before, entry.destination, at_ns);
        entry.rate_bps = entry.rate_bps < rate ? entry.rate_bps : rate;
        if (entry.rate_bps > 0) {
            plan->entries[kept++] = entry;
        }
    }
    plan->count = kept;
}
