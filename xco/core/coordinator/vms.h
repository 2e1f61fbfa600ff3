// VMs with weights and guarantees: follows their interfaces, and gives each a queue behind every
// gate; part of the coordinator's shell.
#ifndef XCO_COORDINATOR_VMS_H
#define XCO_COORDINATOR_VMS_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/state.h"

// Prepares for the VMs that the configuration lists, before any gate is made; 0 or a negative
// errno.
int xco_vms_open(struct xco_coordinator *c);

// Looks for the interface of each listed VM: at the start, or after events were lost.
void xco_vms_scan(struct xco_coordinator *c);

// Takes events of interfaces as the kernel sent them.
void xco_vms_hear(struct xco_coordinator *c, const void *events, size_t length);

// Takes the bytes that entered a gate, by VM.
void xco_vms_read(struct xco_coordinator *c, int64_t now_ns, unsigned gate);

// Does a piece of what VMs that came, went or send otherwise make due.
void xco_vms_work(struct xco_coordinator *c, int64_t now_ns);

// Publishes the VMs that are here.
void xco_vms_publish(struct xco_coordinator *c, int64_t now_ns);

#endif
