// The queues of VMs behind each gate: makes, changes and removes them in pieces; part of the
// coordinator's shell.
//
// The state has how each queue is in the kernel, and a walk compares it with how it should be: VMs
// come and go, and guarantees follow what is sent. Many requests at once would delay gates.
#ifndef XCO_COORDINATOR_VM_QUEUES_H
#define XCO_COORDINATOR_VM_QUEUES_H

#include "coordinator/state.h"

// Call before a gate is made: notes the queues that are made with it.
void xco_vm_queues_prepare(struct xco_coordinator *c, unsigned gate);

// A VM came or went: begins the walk again. Goes on with it while no gate waits.
void xco_vm_queues_begin(struct xco_coordinator *c);
void xco_vm_queues_work(struct xco_coordinator *c, int64_t now_ns);

// Whether a slot has its queue behind each gate.
bool xco_vm_queues_stand(const struct xco_coordinator *c, unsigned slot);

#endif
