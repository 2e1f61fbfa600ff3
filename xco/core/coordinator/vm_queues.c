// The queues of VMs behind each gate: makes, changes and removes them in pieces; part of the
// coordinator's shell.
#include "coordinator/vm_queues.h"

#include "coordinator/background.h"
#include "coordinator/loss.h"
#include "qdisc/sources.h"

#define REST_NS 50000000 // between walks: rates are measured as often
#define CHANGE 8         // a guarantee is set again if it changes by more than this part

// Returns how a queue should be.
static struct xco_slot_class wanted(const struct xco_coordinator *c, unsigned gate, unsigned slot) {
    return (struct xco_slot_class){
        .guarantee_bps = xco_vms_guaranteed(&c->vms.shares, gate, slot),
        .weight = c->vms.shares.slots[slot].weight,
    };
}

void xco_vm_queues_prepare(struct xco_coordinator *c, unsigned gate) {
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        c->vms.classes[gate][slot] = wanted(c, gate, slot);
    }
}

void xco_vm_queues_begin(struct xco_coordinator *c) {
    c->vms.walk.next = 0;
    c->vms.work_ns = 0;
}

static bool is_news(const struct xco_slot_class *was, const struct xco_slot_class *is) {
    const uint64_t a = was->guarantee_bps, b = is->guarantee_bps;
    const uint64_t more = a > b ? a : b, less = a > b ? b : a;
    return was->weight != is->weight || (is->weight > 0 && (more - less) * CHANGE > more);
}

// Takes the walk's next queue that is not as it should be; false: the walk is done.
static bool take_next(struct xco_coordinator *c, unsigned *gate, unsigned *slot) {
    unsigned entry;
    while (xco_walk_take(&c->vms.walk, XCO_GATES * XCO_SLOTS, &entry)) {
        *gate = entry / XCO_SLOTS;
        *slot = entry % XCO_SLOTS;
        const struct xco_slot_class is = wanted(c, *gate, *slot);
        if (c->core.destinations[*gate].used && is_news(&c->vms.classes[*gate][*slot], &is)) {
            return true;
        }
    }
    return false;
}

static void change(struct xco_coordinator *c, unsigned gate, unsigned slot) {
    struct xco_slot_class *class = &c->vms.classes[gate][slot];
    const bool exists = class->weight > 0;
    *class = wanted(c, gate, slot);
    xco_batch_clear(&c->batch);
    if (class->weight == 0) {
        xco_sources_remove_slot(&c->batch, &c->gate.tree, gate, slot);
    } else if (exists) {
        xco_sources_change_slot(&c->batch, &c->gate.tree, gate, slot);
    } else {
        xco_sources_add_slot(&c->batch, &c->gate.tree, gate, slot);
    }
    int error = xco_gate_send(&c->gate, &c->batch, NULL);
    if (error != 0) {
        xco_queues_lose(c, error);
    }
}

void xco_vm_queues_work(struct xco_coordinator *c, int64_t now_ns) {
    unsigned gate, slot, done = 0;
    while (c->present && xco_background_goes_on(c, done)) {
        if (c->gate.tree.slots == NULL || !take_next(c, &gate, &slot)) {
            c->vms.work_ns = now_ns + REST_NS;
            break;
        }
        change(c, gate, slot);
        done++;
    }
}

bool xco_vm_queues_stand(const struct xco_coordinator *c, unsigned slot) {
    bool stand = true;
    for (unsigned gate = 0; gate < XCO_GATES && c->gate.tree.slots != NULL; gate++) {
        stand = stand && (!c->core.destinations[gate].used ||
                          c->vms.classes[gate][slot].weight == c->vms.shares.slots[slot].weight);
    }
    return stand;
}
