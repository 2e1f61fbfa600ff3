// Which VMs send to which destination, and what their weights and guarantees add up to; pure.
#include "coordinator/engine/vms.h"

#include <string.h>

#define LOOK_NS 1000000     // shortest interval of looks
#define WINDOW_NS 50000000  // over which a rate is measured
#define ACTIVE_NS 100000000 // without a packet for this long, a VM no longer counts
#define MBPS 1000000u
#define MARGIN_BPS MBPS // what a VM may use above its rate, in addition to half of it
#define FINE 1024u      // parts of a weight

void xco_vms_begin(struct xco_vms *vms) {
    memset(vms, 0, sizeof *vms);
    for (unsigned slot = 0; slot < XCO_SOURCES; slot++) {
        vms->slots[slot].weight = 1;
    }
}

unsigned xco_vms_free(const struct xco_vms *vms) {
    for (unsigned slot = XCO_SOURCES; slot < XCO_SLOTS; slot++) {
        if (vms->slots[slot].weight == 0) {
            return slot;
        }
    }
    return 0;
}

// Sets whether a slot sends to a destination, and what it may soon use there.
static void set_use(struct xco_vms *vms, unsigned gate, unsigned slot, bool active,
                    uint64_t soon_bps) {
    struct xco_vm_use *use = &vms->gates[gate].uses[slot];
    if (gate != XCO_OUTSIDE) {
        vms->active[slot] += active;
        vms->active[slot] -= use->active;
        vms->soon_bps[slot] += soon_bps - use->soon_bps;
    }
    use->active = active;
    use->soon_bps = soon_bps;
}

// What a slot sent so far is no longer its VM's.
static void forget(struct xco_vms *vms, unsigned gate, unsigned slot) {
    struct xco_vm_use *use = &vms->gates[gate].uses[slot];
    set_use(vms, gate, slot, false, 0);
    *use = (struct xco_vm_use){.bytes = use->bytes, .window_bytes = use->bytes};
}

void xco_vms_set(struct xco_vms *vms, unsigned slot, struct xco_slot share) {
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        forget(vms, gate, slot);
    }
    vms->slots[slot] = share;
    vms->sent_bytes[slot] = 0;
}

void xco_vms_leave(struct xco_vms *vms, unsigned gate) {
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        forget(vms, gate, slot);
    }
    vms->gates[gate] = (struct xco_vm_gate){0}; // its counts begin at 0, too
}

static void take(struct xco_vms *vms, int64_t now_ns, unsigned gate, unsigned slot,
                 uint64_t bytes) {
    struct xco_vm_use *use = &vms->gates[gate].uses[slot];
    bool sends = vms->slots[slot].weight > 0 && bytes != use->bytes;
    vms->sent_bytes[slot] += bytes - use->bytes;
    use->bytes = bytes;
    use->seen_ns = sends ? now_ns : use->seen_ns;
    bool active = sends || (use->active && now_ns - use->seen_ns < ACTIVE_NS);
    uint64_t soon_bps = use->rate_bps + use->rate_bps / 2 + MARGIN_BPS;
    set_use(vms, gate, slot, active, active ? soon_bps : 0);
}

// Measures the rates of all slots at the end of a window.
static void measure(struct xco_vm_gate *gate, int64_t now_ns) {
    int64_t over_us = (now_ns - gate->window_ns) / 1000;
    if (over_us < WINDOW_NS / 1000) {
        return;
    }
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        struct xco_vm_use *use = &gate->uses[slot];
        uint64_t bps = (use->bytes - use->window_bytes) * 8 * 1000000 / (uint64_t)over_us;
        use->rate_bps = bps > use->window_bps ? bps : use->window_bps;
        use->window_bps = bps;
        use->window_bytes = use->bytes;
    }
    gate->window_ns = now_ns;
}

// Returns what a VM's guarantee reserves at a destination.
static uint64_t reserved_bps(const struct xco_vms *vms, const struct xco_vm_use *use,
                             unsigned slot) {
    uint64_t guarantee_bps = (uint64_t)vms->slots[slot].guarantee_mbps * MBPS;
    uint64_t others_bps = vms->soon_bps[slot] - use->soon_bps;
    uint64_t left_bps = guarantee_bps > others_bps ? guarantee_bps - others_bps : 0;
    uint64_t equal_bps = guarantee_bps / vms->active[slot];
    uint64_t share_bps = left_bps > equal_bps ? left_bps : equal_bps;
    return use->soon_bps < share_bps ? use->soon_bps : share_bps;
}

uint64_t xco_vms_guaranteed(const struct xco_vms *vms, unsigned gate, unsigned slot) {
    const struct xco_vm_use *use = &vms->gates[gate].uses[slot];
    const uint64_t guarantee_bps = (uint64_t)vms->slots[slot].guarantee_mbps * MBPS;
    const uint64_t soon_bps = vms->soon_bps[slot];
    if (gate == XCO_OUTSIDE) {
        return guarantee_bps > soon_bps ? guarantee_bps - soon_bps : 0;
    }
    const bool known = use->active && use->rate_bps > 0;
    return known ? reserved_bps(vms, use, slot)
                 : guarantee_bps / (vms->active[slot] + !use->active);
}

static uint16_t narrowed(uint64_t value) {
    return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

static uint64_t weight_of_active(const struct xco_vms *vms, unsigned gate) {
    uint64_t weight = 0;
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        weight += vms->gates[gate].uses[slot].active ? vms->slots[slot].weight : 0;
    }
    return weight;
}

// Returns how far a weight counts, in parts: a VM that uses less than its share of the gate counts
// only for what it may soon use of it. A gate that is closed, or in slices, tells nothing.
static uint64_t counted(const struct xco_destination *destination, uint64_t weight, uint64_t all,
                        uint64_t soon_bps) {
    const uint64_t rate_bps = destination->lasts ? destination->applied_bps : 0;
    if (soon_bps >= rate_bps) {
        return weight * FINE;
    }
    const uint64_t used = soon_bps * all * FINE / rate_bps;
    return used < weight * FINE ? used : weight * FINE;
}

static void add_up(const struct xco_vms *vms, unsigned gate, struct xco_destination *destination) {
    const uint64_t all = weight_of_active(vms, gate);
    uint64_t parts = 0, reserved = 0;
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        const struct xco_vm_use *use = &vms->gates[gate].uses[slot];
        if (use->active) {
            parts += counted(destination, vms->slots[slot].weight, all, use->soon_bps);
            reserved += reserved_bps(vms, use, slot);
        }
    }
    const uint64_t weight = (parts + FINE - 1) / FINE;
    destination->weight = narrowed(weight > 0 ? weight : 1); // 0 would say that no VM is listed
    destination->guarantee_mbps = narrowed((reserved + MBPS - 1) / MBPS);
}

void xco_vms_look(struct xco_vms *vms, int64_t now_ns, unsigned gate,
                  const uint64_t bytes[XCO_SLOTS], struct xco_destination *destination) {
    struct xco_vm_gate *here = &vms->gates[gate];
    bool first = here->looked_ns == 0;
    if (!first && now_ns - here->looked_ns < LOOK_NS) {
        return;
    }
    here->looked_ns = now_ns;
    here->window_ns = first ? now_ns : here->window_ns;
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        take(vms, now_ns, gate, slot, __atomic_load_n(&bytes[slot], __ATOMIC_ACQUIRE));
    }
    measure(here, now_ns);
    if (gate != XCO_OUTSIDE) {
        add_up(vms, gate, destination);
    }
}
