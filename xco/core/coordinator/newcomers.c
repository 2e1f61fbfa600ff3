// The coordinator's V2V flows: detects them, creates queues, removes idle ones; part of its shell.
#include "coordinator/newcomers.h"

#include <errno.h>
#include <string.h>

#include "coordinator/background.h"
#include "coordinator/engine/engine.h"
#include "coordinator/loss.h"
#include "coordinator/queues.h"
#include "qdisc/tree.h"
#include "common/log.h"

#define SIGHTS 8 // per turn: each may create a queue, which takes some 30 us
#define CROWD 2u // frames
#define SPARE 32u // free slots from which on newcomers are limited again
#define WIDE_SCANS 8 // factor on the scan interval while newcomers may use the whole line

// Adds the requests for a flow to the batch; false if the core has no room for it.
static bool add_flow(struct xco_coordinator *c, int64_t now_ns, const struct xco_pair *pair) {
    uint16_t host = xco_config_host(&c->config, &pair->destination);
    int gate = xco_core_find(&c->core, host);
    bool made = gate < 0;
    if (made) {
        gate = xco_core_add(&c->core, now_ns, host, xco_config_way(&c->config, host));
    }
    int flow = gate < 0 ? -1 : xco_flows_add(&c->flows, now_ns, pair, (unsigned)gate);
    if (flow < 0) {
        if (made && gate >= 0) {
            xco_core_remove(&c->core, (unsigned)gate);
        }
        return false;
    }
    if (made) {
        xco_tree_add_gate(&c->batch, &c->gate.tree, (unsigned)gate);
    }
    xco_tree_add_flow(&c->batch, &c->gate.tree, (unsigned)gate, (unsigned)flow, pair);
    return true;
}

// Limits the total rate of newcomers.
static void limit_newcomers(struct xco_coordinator *c, uint64_t rate_bps) {
    xco_batch_clear(&c->batch);
    xco_tree_set_newcomers(&c->batch, &c->gate.tree, rate_bps);
    int error = xco_gate_send(&c->gate, &c->batch, NULL);
    if (error != 0) {
        xco_queues_lose(c, error);
    }
}

// There is no room for a flow: newcomers may now be large, and share the limit of unlisted
// destinations. They never get the line: sending to many addresses would evade coordination.
static void refuse_flow(struct xco_coordinator *c, uint16_t host) {
    c->counts.flows_refused++;
    c->core.more = c->core.more || host != XCO_CONTROLLER;
    if (!c->wide) {
        c->wide = true;
        xco_say("%s: more large flows than there is room for: those without a queue share "
                "what unlisted destinations have, until there is",
                c->config.interface);
        limit_newcomers(c, c->config.core.outside_bps);
    }
}

static void limit_again(struct xco_coordinator *c) {
    if (c->wide && xco_flows_room(&c->flows, XCO_OUTSIDE, SPARE) && xco_core_has_room(&c->core)) {
        c->wide = c->core.more = false;
        xco_say("%s: there is room for large flows again", c->config.interface);
        limit_newcomers(c, c->config.tree.newcomer_bps);
    }
}

static bool has_room(const struct xco_coordinator *c, uint16_t host) {
    bool outside = host == XCO_CONTROLLER;
    return xco_flows_room(&c->flows, outside ? XCO_OUTSIDE : 0, 0) &&
           (outside || xco_core_has_room(&c->core) || xco_core_find(&c->core, host) >= 0);
}

// Gives a large flow its queue.
static bool make_flow(struct xco_coordinator *c, int64_t now_ns, const struct xco_pair *pair,
                      int64_t since_ns) {
    uint16_t host = xco_config_host(&c->config, &pair->destination);
    if (!has_room(c, host)) {
        refuse_flow(c, host);
        return false;
    }
    xco_batch_clear(&c->batch);
    if (!add_flow(c, now_ns, pair)) {
        return false; // it has one
    }
    int error = xco_gate_send(&c->gate, &c->batch, NULL);
    if (error != 0) {
        xco_queues_lose(c, error);
        return false;
    }
    uint64_t took = (uint64_t)(xco_now_ns() - since_ns);
    c->counts.flows_made++;
    c->counts.flow_ready_ns = took;
    c->counts.flow_ready_max_ns =
        took > c->counts.flow_ready_max_ns ? took : c->counts.flow_ready_max_ns;
    return true;
}

// Whether newcomers wait for each other: more than the frames in transmission.
static bool is_crowded(struct xco_coordinator *c) {
    struct xco_reading reading;
    xco_batch_clear(&c->batch);
    xco_tree_ask_newcomers(&c->batch, c->gate.tree.interface);
    return xco_gate_ask(&c->gate, &c->batch, &reading, 1) == 1 &&
           reading.backlog_bytes > CROWD * c->gate.tree.frame_bytes;
}

void xco_newcomers_scan(struct xco_coordinator *c, int64_t now_ns) {
    struct xco_sight sights[SIGHTS];
    bool made = false;
    int count = xco_watch_take(c->watch, sights, SIGHTS);
    c->watch_idle = count == 0;
    int64_t pause_ns = (int64_t)c->config.scan_ns * (c->wide ? WIDE_SCANS : 1);
    bool rest = count == SIGHTS && !c->wide; // the next turns take the rest
    c->scan_ns = c->watch_idle ? XCO_NEVER : now_ns + (rest ? 0 : pause_ns);
    bool crowded = count > 0 && is_crowded(c);
    for (int i = 0; i < count && c->present; i++) {
        int64_t since_ns;
        if (xco_flows_see(&c->flows, now_ns, &sights[i], crowded, &since_ns)) {
            made = make_flow(c, now_ns, &sights[i].pair, since_ns) || made;
        }
    }
    if (count < 0 && count != -ENETDOWN) { // down: its queues exist, and wait for it to come up
        xco_queues_lose(c, count);
    } else if (made && c->present) {
        xco_queues_except(c);
    }
}

// Removes a flow's queue, and its gate with the gate's last flow.
static int remove_flow(struct xco_coordinator *c, unsigned flow) {
    const struct xco_v2v_flow *entry = &c->flows.table[flow];
    unsigned gate = entry->gate;
    xco_batch_clear(&c->batch);
    xco_tree_remove_flow(&c->batch, &c->gate.tree, gate, flow, &entry->pair);
    xco_flows_remove(&c->flows, flow);
    if (gate != XCO_OUTSIDE && !xco_flows_behind(&c->flows, gate)) {
        xco_tree_remove_gate(&c->batch, &c->gate.tree, gate);
        xco_core_remove(&c->core, gate);
    }
    c->counts.flows_removed++;
    return xco_gate_send(&c->gate, &c->batch, NULL);
}

// Asks the kernel how much a flow's queue has sent.
static void look_at_flow(struct xco_coordinator *c, int64_t now_ns, unsigned flow) {
    struct xco_reading reading;
    xco_batch_clear(&c->batch);
    xco_tree_ask_flow(&c->batch, c->gate.tree.interface, c->flows.table[flow].gate, flow);
    int count = xco_gate_ask(&c->gate, &c->batch, &reading, 1);
    if (count == 1) {
        xco_flows_look(&c->flows, now_ns, flow, reading.sent_bytes, reading.backlog_bytes);
    } else {
        xco_queues_lose(c, count < 0 ? count : -ENOENT);
    }
}

// Checks a flow's queue, and removes it if it is idle; returns whether it did.
static bool sweep_flow(struct xco_coordinator *c, int64_t now_ns, unsigned flow) {
    look_at_flow(c, now_ns, flow);
    if (!c->present || !xco_flows_idle(&c->flows, now_ns, flow)) {
        return false;
    }
    int error = remove_flow(c, flow);
    if (error != 0) {
        xco_queues_lose(c, error);
    }
    return true;
}

// Sweeps the next flows; returns whether any was removed.
static bool sweep_piece(struct xco_coordinator *c, int64_t now_ns) {
    bool removed = false;
    unsigned flow, done = 0;
    while (c->present && xco_background_goes_on(c, done)) {
        if (!xco_walk_take(&c->sweep, XCO_FLOWS, &flow)) {
            c->sweep_ns = now_ns + c->flows.idle_ns / 4;
            break;
        }
        if (c->flows.table[flow].used) {
            removed = sweep_flow(c, now_ns, flow) || removed;
            done++;
        }
    }
    return removed;
}

void xco_newcomers_sweep(struct xco_coordinator *c, int64_t now_ns) {
    bool removed = sweep_piece(c, now_ns);
    if (removed && c->present) {
        xco_queues_except(c);
    }
    if (c->present) {
        limit_again(c);
    }
}
