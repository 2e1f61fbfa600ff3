// The queues behind a gate that its sources share, as requests to the kernel.
#include "qdisc/sources.h"

#include "qdisc/handles.h"
#include "qdisc/maps.h"
#include "qdisc/parts.h"

#define MINOR_SHARED 1u // of all queues of a gate with shares by VM
#define GUARANTEE_NS 50000000u // burst of a guarantee: what it misses while its gate is closed
#define SHARED_NS 1000000u      // burst of what is unlimited
#define UNCUT_FRAMES 2u         // a gate's bucket passes GSO packets of so many

static void add_unlimited(struct xco_batch *batch, const struct xco_tree *tree, uint32_t id) {
    const struct xco_class class = {.rate_bps = XCO_UNLIMITED_BPS, .burst_ns = SHARED_NS};
    xco_part_class(batch, tree, id, XCO_MAKE, &class);
}

// Returns the largest packet. HTB sends one in a turn even if it is larger than the quantum: shares
// would be of packets.
static uint32_t largest(const struct xco_tree *tree) {
    uint32_t frames = UNCUT_FRAMES * tree->frame_bytes;
    return tree->uncut_bytes > frames ? tree->uncut_bytes : frames;
}

static const struct xco_slot_class *class_of(const struct xco_tree *tree, unsigned gate,
                                             unsigned slot) {
    return &tree->slots[gate * XCO_SLOTS + slot];
}

static void set_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                     unsigned slot, uint16_t flags) {
    const struct xco_slot_class *share = class_of(tree, gate, slot);
    const struct xco_class class = {
        .rate_bps = share->guarantee_bps > 0 ? share->guarantee_bps : XCO_SLOWEST_BPS,
        .burst_ns = GUARANTEE_NS,
        .ceil_bps = XCO_UNLIMITED_BPS,
        .parent = MINOR_SHARED,
        .quantum = share->weight * largest(tree),
    };
    xco_part_class(batch, tree, CLASS_FLOW(gate, slot), flags, &class);
}

void xco_sources_change_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot) {
    set_slot(batch, tree, gate, slot, XCO_CHANGE);
}

void xco_sources_add_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                          unsigned slot) {
    set_slot(batch, tree, gate, slot, XCO_MAKE);
    xco_part_fifo(batch, tree->interface, CLASS_FLOW(gate, slot), tree->queue_bytes);
}

void xco_sources_remove_slot(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                             unsigned slot) {
    xco_part_remove_class(batch, tree->interface, CLASS_FLOW(gate, slot));
}

// Shares a gate among VMs.
static void add_slots(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate) {
    add_unlimited(batch, tree, SHARE(gate) | MINOR_SHARED);
    for (unsigned slot = 0; slot < XCO_SLOTS; slot++) {
        if (class_of(tree, gate, slot)->weight > 0) {
            xco_sources_add_slot(batch, tree, gate, slot);
        }
    }
}

// Shares a gate among the interfaces that packets come from: no VM fills the common queue.
static void add_interfaces(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate) {
    for (unsigned source = 0; source < XCO_SOURCES; source++) {
        add_unlimited(batch, tree, CLASS_FLOW(gate, source));
        xco_part_fifo(batch, tree->interface, CLASS_FLOW(gate, source), tree->queue_bytes);
    }
}

uint32_t xco_sources_default(const struct xco_tree *tree) {
    return tree->slots == NULL ? 0 : CLASS_FLOW(0, XCO_SLOT_UNLISTED) & 0xffffu;
}

void xco_sources_add(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate) {
    (tree->slots == NULL ? add_interfaces : add_slots)(batch, tree, gate);
    xco_part_program(batch, tree->interface, SHARE(gate), tree->share, "xco_share", false);
}
