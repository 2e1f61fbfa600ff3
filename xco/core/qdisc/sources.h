// The queues behind a gate that its sources share, as requests to the kernel.
#ifndef XCO_QDISC_SOURCES_H
#define XCO_QDISC_SOURCES_H

#include "qdisc/layout.h"
#include "qdisc/message.h"

// Adds the requests that share a new gate among the VMs or interfaces that packets come from.
void xco_sources_add(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate);

// Adds the requests that create a slot's queue behind a gate, change or remove it.
void xco_sources_add_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                          unsigned slot);
void xco_sources_change_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot);
void xco_sources_remove_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot);

// Returns the minor number of the class for packets without one, which would pass all others: that
// of the first queue of unlisted VMs; 0: none.
uint32_t xco_sources_default(const struct xco_tree *tree);

#endif
