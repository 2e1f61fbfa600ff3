// Gates where a BPF program classifies.
#ifndef XCO_COORDINATOR_PLACES_H
#define XCO_COORDINATOR_PLACES_H

#include <stdint.h>

#include "coordinator/state.h"

// Loads the program; 0, also where u32 filters are used instead, or a negative errno.
int xco_places_open(struct xco_coordinator *c);

// Takes its notices.
void xco_places_take(struct xco_coordinator *c);

// Recreates all gates; 0 or a negative errno.
int xco_places_restore(struct xco_coordinator *c, int64_t now_ns);

// Reads the gates that are due; removes idle ones.
void xco_places_look(struct xco_coordinator *c, int64_t now_ns);
void xco_places_sweep(struct xco_coordinator *c, int64_t now_ns);

// Checks that tree and filter still exist, and compares counts with the kernel's backlog: little
// else of a program's work asks the kernel.
void xco_places_verify(struct xco_coordinator *c);

#endif
