// Queues of VMs behind plain functions, without a kernel: what would be sent to it is counted.
#include <stdlib.h>

#include "coordinator/background.h"
#include "coordinator/loss.h"
#include "coordinator/vm_queues.h"
#include "qdisc/sources.h"

enum kind { ADDED, CHANGED, REMOVED, KINDS };

static unsigned counts[KINDS];
static bool clear; // no gate is due

void xco_sources_add_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                          unsigned slot) {
    (void)batch, (void)tree, (void)gate, (void)slot;
    counts[ADDED]++;
}

void xco_sources_change_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot) {
    (void)batch, (void)tree, (void)gate, (void)slot;
    counts[CHANGED]++;
}

void xco_sources_remove_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot) {
    (void)batch, (void)tree, (void)gate, (void)slot;
    counts[REMOVED]++;
}

void xco_batch_clear(struct xco_batch *batch) {
    batch->count = 0;
}

int xco_gate_send(struct xco_gate *gate, const struct xco_batch *batch, uint32_t *place) {
    (void)gate, (void)batch, (void)place;
    return 0;
}

void xco_queues_lose(struct xco_coordinator *c, int error) {
    (void)error;
    c->present = false;
}

bool xco_background_goes_on(const struct xco_coordinator *c, unsigned done) {
    (void)c;
    return clear && done < XCO_PIECE;
}

// A host with so many gates.
struct xco_coordinator *shim_begin(unsigned gates) {
    struct xco_coordinator *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    xco_vms_begin(&c->vms.shares);
    c->present = true;
    c->gate.tree.slots = c->vms.classes[0];
    for (unsigned gate = 0; gate < gates; gate++) {
        c->core.destinations[gate].used = true;
        xco_vm_queues_prepare(c, gate);
    }
    return c;
}

void shim_set(struct xco_coordinator *c, unsigned slot, uint16_t weight, uint16_t guarantee_mbps) {
    xco_vms_set(&c->vms.shares, slot, (struct xco_slot){weight, guarantee_mbps});
    xco_vm_queues_begin(c);
}

void shim_look(struct xco_coordinator *c, int64_t now_ns, unsigned gate, const uint64_t *bytes) {
    xco_vms_look(&c->vms.shares, now_ns, gate, bytes, &c->core.destinations[gate]);
}

// Does a piece; writes how many queues were added, changed and removed. Returns whether it is done.
bool shim_work(struct xco_coordinator *c, int64_t now_ns, bool is_clear, unsigned *done) {
    clear = is_clear;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        counts[kind] = 0;
    }
    xco_vm_queues_work(c, now_ns);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        done[kind] = counts[kind];
    }
    return c->vms.work_ns > now_ns;
}

uint64_t shim_guarantee(const struct xco_coordinator *c, unsigned gate, unsigned slot) {
    return c->vms.classes[gate][slot].guarantee_bps;
}
