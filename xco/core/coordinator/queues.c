// The coordinator's queues: creates, opens and closes, reads, removes them; part of its shell.
#include "coordinator/queues.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/engine/engine.h"
#include "coordinator/loss.h"
#include "coordinator/marks.h"
#include "coordinator/places.h"
#include "coordinator/vm_queues.h"
#include "qdisc/tree.h"
#include "common/log.h"

#define MEND_NS 200000000 // between attempts to recreate a lost tree

// Recreates the gates and queues of flows for which u32 filters classify.
static int restore_flows(struct xco_coordinator *c) {
    for (unsigned gate = 0; gate < XCO_OUTSIDE; gate++) {
        if (c->core.destinations[gate].used) {
            xco_batch_clear(&c->batch);
            xco_tree_add_gate(&c->batch, &c->gate.tree, gate);
            int error = xco_gate_send(&c->gate, &c->batch, NULL);
            if (error != 0) {
                return error;
            }
        }
    }
    for (unsigned flow = 0; flow < XCO_FLOWS; flow++) {
        const struct xco_v2v_flow *entry = &c->flows.table[flow];
        if (entry->used) {
            xco_batch_clear(&c->batch);
            xco_tree_add_flow(&c->batch, &c->gate.tree, entry->gate, flow, &entry->pair);
            int error = xco_gate_send(&c->gate, &c->batch, NULL);
            if (error != 0) {
                return error;
            }
        }
    }
    return 0;
}

// Recreates what was behind the gates before the tree was lost.
static int restore(struct xco_coordinator *c) {
    xco_core_remade(&c->core);
    return c->places.stand ? xco_places_restore(c, xco_now_ns()) : restore_flows(c);
}

// Completes a new tree, or removes it again.
static int fill(struct xco_coordinator *c) {
    int error = restore(c);
    if (error == 0 && !c->places.stand) {
        c->watch = xco_watch_open(c->gate.tree.interface, c->config.tree.small_bytes);
        error = c->watch < 0 ? c->watch : 0;
    }
    if (error != 0) {
        xco_gate_remove(&c->gate); // closed gates that no process moves would hold traffic forever
    }
    return error;
}

// Sets the rates of the queues outside the core.
static void pace_others(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_classifier *classifier = &c->places.classifier;
    xco_classifier_pace(classifier, XCO_QUEUE_NEWCOMERS, c->config.tree.newcomer_bps, now_ns);
    xco_classifier_pace(classifier, XCO_PACE_SMALL, c->config.tree.small_bps, now_ns);
    xco_classifier_pace(classifier, XCO_PACE_CONTROL, c->config.tree.small_bps, now_ns);
    xco_classifier_pace(classifier, XCO_QUEUE_OUTSIDE, c->config.core.outside_bps, now_ns);
}

void xco_queues_except(struct xco_coordinator *c) {
    struct xco_pair pairs[XCO_FLOWS];
    size_t count = xco_flows_pairs(&c->flows, pairs);
    int error = xco_watch_except(c->watch, c->config.tree.small_bytes, pairs, count);
    c->counts.unwatched += error != 0;
}

// Attaches what counts marks to the interface of the tree; else the tree goes, too.
static int attach(struct xco_coordinator *c) {
    int error = xco_marks_attach(c);
    if (error != 0) {
        xco_gate_remove(&c->gate);
    }
    return error;
}

int xco_queues_make(struct xco_coordinator *c, int64_t now_ns) {
    c->mend_ns = now_ns + MEND_NS;
    int error = xco_gate_open(&c->gate, c->config.interface, &c->config.tree);
    if (error != 0) {
        return error;
    }
    __atomic_store_n(&c->shared->interface, c->gate.tree.interface, __ATOMIC_RELAXED);
    if (c->places.stand) {
        error = xco_classifier_begin(&c->places.classifier, (unsigned)c->gate.tree.interface);
    }
    if (c->config.tree.paced) {
        pace_others(c, now_ns);
    }
    xco_vm_queues_prepare(c, XCO_OUTSIDE);
    error = error == 0 ? xco_gate_make(&c->gate) : error;
    if (error == 0) {
        error = fill(c);
    }
    if (error == 0) {
        error = attach(c);
    }
    xco_queues_note_lost(c);
    if (error != 0) {
        xco_gate_close(&c->gate);
        return error;
    }
    c->scan_ns = XCO_NEVER;
    if (!c->places.stand) {
        xco_queues_except(c);
        c->scan_ns = now_ns;
    }
    c->present = true;
    c->wide = c->core.more = false;
    return 0;
}

// Learns how long it takes to set gates: slices are prepared that far ahead.
static void learn_advance(struct xco_core *core, int64_t took_ns) {
    int64_t most = core->config.guard_ns / 2; // of the gap before a slice in which no host sends
    int64_t took = took_ns < most ? took_ns : most;
    core->advance_ns += (took - core->advance_ns) / 8;
}

// Waits the few microseconds until a slice begins for which the gates are already set.
static void await_start(const struct xco_core *core) {
    const struct xco_order *order = &core->current;
    if (!core->fell_back && order->known && order->mode == XCO_SLICE) {
        int64_t limit = xco_now_ns() + core->config.guard_ns;
        int64_t start = order->start_ns < limit ? order->start_ns : limit;
        while (xco_now_ns() < start) {
        }
    }
}

// With departure times a gate is a number in shared memory.
static void set_paces(struct xco_coordinator *c, const struct xco_command *commands, size_t count) {
    int64_t now_ns = xco_now_ns();
    for (size_t i = 0; i < count && c->present; i++) {
        if (commands[i].kind == XCO_SET_GATE) {
            xco_classifier_pace(&c->places.classifier, commands[i].gate,
                                commands[i].opening.rate_bps, now_ns);
            c->counts.gate_changes++;
        }
    }
}

void xco_queues_set(struct xco_coordinator *c, const struct xco_command *commands, size_t count) {
    if (c->config.tree.paced) {
        set_paces(c, commands, count);
        return;
    }
    bool opens = false;
    uint64_t gates = 0;
    xco_batch_clear(&c->batch);
    for (size_t i = 0; i < count; i++) {
        if (commands[i].kind == XCO_SET_GATE) {
            const struct xco_opening *opening = &commands[i].opening;
            xco_tree_set_gate(&c->batch, &c->gate.tree, commands[i].gate, opening);
            opens = opens || opening->rate_bps > 0;
            gates++;
        }
    }
    if (!c->present || c->batch.count == 0) {
        return;
    }
    int64_t before = xco_now_ns();
    int error = xco_gate_send(&c->gate, &c->batch, NULL);
    uint64_t took = (uint64_t)(xco_now_ns() - before);
    if (error == 0 && opens) {
        learn_advance(&c->core, (int64_t)took);
        await_start(&c->core);
        error = xco_gate_kick(&c->gate);
    }
    c->counts.gate_changes += gates;
    c->counts.gate_set_ns += took;
    c->counts.gate_set_max_ns = took > c->counts.gate_set_max_ns ? took : c->counts.gate_set_max_ns;
    if (error != 0) {
        xco_queues_lose(c, error);
    }
}

void xco_queues_look(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_reading readings[XCO_GATES];
    xco_batch_clear(&c->batch);
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        if (xco_core_due(&c->core, now_ns, gate)) {
            xco_tree_ask_gate(&c->batch, c->gate.tree.interface, gate);
        }
    }
    if (c->batch.count == 0) {
        return;
    }
    int count = xco_gate_ask(&c->gate, &c->batch, readings, XCO_GATES);
    c->counts.looks++;
    if (count < (int)c->batch.count) {
        xco_queues_lose(c, count < 0 ? count : -ENOENT);
        return;
    }
    for (int i = 0; i < count; i++) {
        int gate = xco_tree_gate_of(readings[i].handle);
        if (gate >= 0) {
            xco_core_look(&c->core, now_ns, (unsigned)gate, readings[i].backlog_bytes,
                          readings[i].sent_bytes);
        }
    }
}

enum xco_exit xco_queues_explain(const struct xco_coordinator *c, int error) {
    const char *name = c->config.interface;
    if (c->marks.refused) { // it has been logged
        return XCO_EXIT_UNSUPPORTED;
    }
    switch (error) {
    case -ENODEV:
        xco_say("%s: there is no such interface", name);
        return XCO_EXIT_GONE;
    case -EPERM:
    case -EACCES:
        xco_say("%s: its queues may not be set: give the coordinator CAP_NET_ADMIN and CAP_NET_RAW",
                name);
        return XCO_EXIT_DENIED;
    case -EEXIST:
        xco_say("%s: it has a root qdisc of another program: remove it (tc qdisc del dev %s root)",
                name, name);
        return XCO_EXIT_FOREIGN;
    case -EMSGSIZE:
        xco_say("%s: frames of more than 32000 bytes cannot be gated: lower its MTU", name);
        return XCO_EXIT_UNSUPPORTED;
    case -ENOENT:
    case -EOPNOTSUPP:
        xco_say("%s: the kernel lacks %s: load the module for it (tc(8))", name,
                c->gate.lacking == NULL ? "traffic control" : c->gate.lacking);
        return XCO_EXIT_UNSUPPORTED;
    default:
        xco_say("%s: its queues cannot be made: %s", name, strerror(-error));
        return XCO_EXIT_FAILED;
    }
}
