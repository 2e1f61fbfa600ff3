// Shares of VMs behind plain functions, for tests through ctypes.
#include "coordinator/engine/vms.h"

#include <stdlib.h>

struct xco_vms *shim_vms(void) {
    struct xco_vms *vms = malloc(sizeof *vms);
    if (vms != NULL) {
        xco_vms_begin(vms);
    }
    return vms;
}

void shim_vms_set(struct xco_vms *vms, unsigned slot, uint16_t weight, uint16_t guarantee_mbps) {
    xco_vms_set(vms, slot, (struct xco_slot){weight, guarantee_mbps});
}

// Returns the destination's weight, and its guarantee above 16 bits. The gate is open at a rate, for
// good or in slices.
uint32_t shim_vms_look(struct xco_vms *vms, int64_t now_ns, unsigned gate, const uint64_t *bytes,
                       uint64_t rate_bps, bool lasts) {
    struct xco_destination destination = {.applied_bps = rate_bps, .lasts = lasts};
    xco_vms_look(vms, now_ns, gate, bytes, &destination);
    return destination.weight | (uint32_t)destination.guarantee_mbps << 16;
}

uint64_t shim_vms_sent(const struct xco_vms *vms, unsigned slot) {
    return vms->sent_bytes[slot];
}
