// Which VMs send to which destination, and what their weights and guarantees add up to; pure.
//
// Each VM with a share of its own has a slot; others share some (qdisc/maps.h). A destination
// counts the VMs that sent to it within the last 100 ms, each by its weight as far as it uses its
// share of the gate. A VM's guarantee is divided among the
// hosts that it sends to: each gets what the VM may soon use there, within an equal part of the
// guarantee or what the others leave of it. Destinations outside the topology have no part.
#ifndef XCO_COORDINATOR_ENGINE_VMS_H
#define XCO_COORDINATOR_ENGINE_VMS_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/engine/state.h"
#include "qdisc/maps.h"

// What a slot sends to one destination.
struct xco_vm_use {
    bool active;
    uint64_t bytes;        // that entered, at the last look
    uint64_t window_bytes; // the same when the window began
    uint64_t window_bps;   // in the last window
    uint64_t rate_bps;     // the higher one of the last two windows
    uint64_t soon_bps;     // what it may soon use; 0 unless active
    int64_t seen_ns;       // when it last sent
};

struct xco_vm_gate {
    int64_t looked_ns;
    int64_t window_ns; // when the window began
    struct xco_vm_use uses[XCO_SLOTS];
};

struct xco_vms {
    struct xco_slot slots[XCO_SLOTS];
    uint64_t sent_bytes[XCO_SLOTS]; // to all destinations
    unsigned active[XCO_SLOTS];     // hosts that it sends to
    uint64_t soon_bps[XCO_SLOTS];   // what it may soon use to all of them
    struct xco_vm_gate gates[XCO_GATES];
};

// Initialises the state: only the slots of the host and of unlisted VMs exist.
void xco_vms_begin(struct xco_vms *vms);

// Returns a slot without a VM, 0: all have one. Gives a slot to a VM, or takes it away (weight 0).
unsigned xco_vms_free(const struct xco_vms *vms);
void xco_vms_set(struct xco_vms *vms, unsigned slot, struct xco_slot share);

// A gate was created or removed.
void xco_vms_leave(struct xco_vms *vms, unsigned gate);

// Takes the bytes that entered a gate by slot, and writes the weight and the guarantee of its
// destination. Looks within 1 ms of the last one have no effect.
void xco_vms_look(struct xco_vms *vms, int64_t now_ns, unsigned gate,
                  const uint64_t bytes[XCO_SLOTS], struct xco_destination *destination);

// Returns a slot's part of its VM's guarantee behind a gate, bits/s: what is reserved for it there.
// Where the VM is new or does not send, it is the part by count; outside the topology, what is left.
uint64_t xco_vms_guaranteed(const struct xco_vms *vms, unsigned gate, unsigned slot);

#endif
