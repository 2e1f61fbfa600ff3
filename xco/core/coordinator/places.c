// Gates where a BPF program classifies: created when a host wants one, read from shared memory,
// removed when idle; part of the coordinator's shell.
#include "coordinator/places.h"

#include <errno.h>
#include <string.h>

#include "coordinator/background.h"
#include "coordinator/engine/engine.h"
#include "coordinator/loss.h"
#include "coordinator/vm_queues.h"
#include "coordinator/vms.h"
#include "qdisc/tree.h"
#include "common/log.h"

#define CROWD_BYTES 6000u // waiting newcomers: more than the frames in transmission
#define GSO_BYTES 524280u   // GSO_MAX_SIZE of Linux
#define HORIZON_NS 50000000 // longest wait of a packet for its departure time

static void on_notice(void *context, const struct xco_notice *notice);

static struct xco_place place_of(const struct xco_host_address *entry) {
    struct xco_place place = {.kind = XCO_PLACE_IP, .vlan = XCO_ANY_VLAN};
    memcpy(place.address, &entry->address, sizeof place.address);
    return place;
}

static int place_all(struct xco_coordinator *c) {
    for (size_t i = 0; i < c->config.address_count; i++) {
        struct xco_place place = place_of(&c->config.addresses[i]);
        int error =
            xco_classifier_place(&c->places.classifier, &place, c->config.addresses[i].host);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

// Whether gates use departure times: tries it, and logs why not.
static bool is_paced(struct xco_coordinator *c) {
    if (!c->config.edt || c->config.edt_needed) {
        return c->config.edt;
    }
    uint64_t lost = 0;
    int error = xco_gate_try_paced(c->config.interface, &lost);
    xco_queues_say_lost(c->config.interface, lost);
    c->counts.exchange_lost += lost;
    if (error == -ENOENT) {
        xco_say("%s: the kernel lacks fq: gates are token buckets", c->config.interface);
    } else if (error != 0) {
        xco_say("%s: gates are token buckets, since fq is refused: %s", c->config.interface,
                strerror(-error));
    }
    return error == 0;
}

// Logs why no program classifies, and returns the resulting exit code.
static int explain(const struct xco_coordinator *c, int error) {
    const char *problem = xco_classifier_problem();
    xco_say("%s: no BPF program classifies (%s%s%s): %s", c->config.interface, strerror(-error),
            problem[0] == '\0' ? "" : ": ", problem,
            c->config.edt_needed ? "coordinator.gates asks for it"
            : c->config.classifier_needed
                ? "coordinator.classifier asks for it"
                : "u32 filters do, with their limits (docs/howto/xco.md)");
    return c->config.classifier_needed || c->config.edt_needed ? error : 0;
}

// Returns the burst of a slice's gate at the line's rate, at most the largest GSO packet.
static uint32_t uncut_bytes(const struct xco_coordinator_config *config) {
    uint64_t burst = config->core.line_bps / 8000 * config->tree.burst_ns / 1000000;
    return burst < GSO_BYTES ? (uint32_t)burst : GSO_BYTES;
}

static int load(struct xco_coordinator *c, bool paced) {
    const struct xco_classify_terms terms = {
        .horizon_ns = HORIZON_NS,
        .paced = paced,
        .vms = c->config.vm_count > 0,
        .small_bytes = c->config.tree.small_bytes,
        .large_bytes = (uint32_t)c->config.flow_bytes,
        .crowd_bytes = CROWD_BYTES,
        .window_ns = c->config.flow_window_ns,
        .hosts = xco_config_hosts(&c->config),
        .admission = c->config.admission_ppm > 0,
    };
    struct xco_classifier *classifier = &c->places.classifier;
    int error = xco_classifier_open(classifier, c->config.classifier, &terms, on_notice, c);
    error = error == 0 ? place_all(c) : error;
    if (error != 0) {
        xco_classifier_close(classifier);
        return error;
    }
    c->places.stand = true;
    c->config.tree.paced = c->config.core.paced = paced;
    c->config.tree.classify = classifier->classify;
    c->config.tree.share = classifier->share;
    c->config.tree.uncut_bytes = uncut_bytes(&c->config);
    c->config.tree.slots = c->config.vm_count > 0 && !paced ? c->vms.classes[0] : NULL;
    return 0;
}

int xco_places_open(struct xco_coordinator *c) {
    if (c->config.classifier[0] == '\0') {
        return 0;
    }
    bool paced = is_paced(c);
    int error = load(c, paced);
    if (error != 0 && paced && !c->config.edt_needed) {
        xco_say("%s: gates are token buckets, since no program gives times of departure (%s)",
                c->config.interface, strerror(-error));
        error = load(c, false);
    }
    return error == 0 ? 0 : explain(c, error);
}

static int send_gate(struct xco_coordinator *c, unsigned gate) {
    xco_vm_queues_prepare(c, gate);
    xco_batch_clear(&c->batch);
    xco_tree_add_gate(&c->batch, &c->gate.tree, gate);
    return xco_gate_send(&c->gate, &c->batch, NULL);
}

static void begin_gate(struct xco_coordinator *c, unsigned gate, int64_t now_ns) {
    xco_classifier_reset(&c->places.classifier, gate);
    xco_vms_leave(&c->vms.shares, gate);
    c->places.gates[gate] = (struct xco_gate_state){.active_ns = now_ns, .moved_ns = now_ns};
}

// No gate is left: the host's packets share the limit of unlisted destinations.
static void refuse(struct xco_coordinator *c, uint16_t host) {
    c->counts.flows_refused++;
    if (!c->core.more) {
        xco_say("%s: more destinations than there are gates: the others share what unlisted ones "
                "have",
                c->config.interface);
    }
    c->core.more = true;
    xco_classifier_give(&c->places.classifier, host, XCO_OUTSIDE);
}

static void make_gate(struct xco_coordinator *c, uint16_t host) {
    int64_t now_ns = xco_now_ns();
    if (!c->present || host >= c->places.classifier.hosts || xco_core_find(&c->core, host) >= 0) {
        return;
    }
    int gate = xco_core_add(&c->core, now_ns, host, xco_config_way(&c->config, host));
    if (gate < 0) {
        refuse(c, host);
        return;
    }
    int error = send_gate(c, (unsigned)gate);
    if (error != 0) {
        xco_core_remove(&c->core, (unsigned)gate);
        xco_queues_lose(c, error);
        return;
    }
    begin_gate(c, (unsigned)gate, now_ns);
    xco_classifier_give(&c->places.classifier, host, (unsigned)gate);
    uint64_t took = (uint64_t)(xco_now_ns() - now_ns);
    c->counts.flows_made++;
    c->counts.flow_ready_ns = took;
    c->counts.flow_ready_max_ns =
        took > c->counts.flow_ready_max_ns ? took : c->counts.flow_ready_max_ns;
}

static void on_notice(void *context, const struct xco_notice *notice) {
    struct xco_coordinator *c = context;
    if (notice->kind == XCO_NOTICE_WANTED) {
        make_gate(c, (uint16_t)notice->which);
    } else if (notice->which < XCO_GATES) {
        xco_core_stir(&c->core, xco_now_ns(), notice->which);
    }
}

void xco_places_take(struct xco_coordinator *c) {
    xco_classifier_notices(&c->places.classifier);
}

// Lets hosts without a gate, and refused ones, ask for one (again): what they asked for before may
// be lost.
static void let_ask(struct xco_classifier *classifier) {
    for (unsigned host = 0; host < classifier->hosts; host++) {
        const uint32_t gate = __atomic_load_n(&classifier->targets[host].gate, __ATOMIC_ACQUIRE);
        if (gate == 0 || gate == XCO_OUTSIDE + 1) {
            xco_classifier_take(classifier, (uint16_t)host);
        }
    }
}

int xco_places_restore(struct xco_coordinator *c, int64_t now_ns) {
    let_ask(&c->places.classifier);
    for (unsigned queue = XCO_OUTSIDE; queue < XCO_QUEUES; queue++) {
        xco_classifier_reset(&c->places.classifier, queue);
    }
    xco_vms_leave(&c->vms.shares, XCO_OUTSIDE);
    int error = 0;
    for (unsigned gate = 0; gate < XCO_OUTSIDE && error == 0; gate++) {
        if (c->core.destinations[gate].used) {
            error = send_gate(c, gate);
            begin_gate(c, gate, now_ns);
        }
    }
    return error;
}

// Asks the kernel for the actual backlog, and corrects the counts by it.
static uint64_t asked(struct xco_coordinator *c, unsigned gate, const struct xco_passage *before,
                      int64_t now_ns) {
    struct xco_reading reading;
    xco_batch_clear(&c->batch);
    xco_tree_ask_gate(&c->batch, c->gate.tree.interface, gate);
    int count = xco_gate_ask(&c->gate, &c->batch, &reading, 1);
    if (count != 1) {
        xco_queues_lose(c, count < 0 ? count : -ENOENT);
        return 0;
    }
    c->counts.looks++;
    struct xco_gate_state *state = &c->places.gates[gate];
    state->moved_ns = now_ns; // ask it again after the same time
    struct xco_passage after = xco_classifier_passage(&c->places.classifier, gate, now_ns);
    return xco_backlog_correct(state, before, &after, reading.backlog_bytes);
}

// Reads a gate's counters, and corrects doubtful ones by the kernel's. Packets with departure times
// leave on time: there is nothing to ask.
static void look(struct xco_coordinator *c, unsigned gate, int64_t now_ns) {
    const struct xco_destination *destination = &c->core.destinations[gate];
    struct xco_gate_state *state = &c->places.gates[gate];
    struct xco_passage passage = xco_classifier_passage(&c->places.classifier, gate, now_ns);
    bool closed = destination->applied_bps == 0;
    int64_t open_ns = closed ? now_ns : destination->opened_ns;
    uint64_t backlog = xco_backlog_read(state, &passage, open_ns, now_ns);
    if (state->doubtful && !c->config.tree.paced) {
        backlog = asked(c, gate, &passage, now_ns);
    }
    if (backlog == 0 && closed) { // an open gate notifies too often
        xco_classifier_arm(&c->places.classifier, gate);
    }
    xco_core_look(&c->core, now_ns, gate, backlog < UINT32_MAX ? (uint32_t)backlog : UINT32_MAX,
                  passage.left);
    xco_vms_read(c, now_ns, gate);
}

void xco_places_look(struct xco_coordinator *c, int64_t now_ns) {
    for (unsigned gate = 0; gate < XCO_GATES && c->present; gate++) {
        if (xco_core_due(&c->core, now_ns, gate)) {
            look(c, gate, now_ns);
        }
    }
}

static void remove_gate(struct xco_coordinator *c, unsigned gate) {
    xco_classifier_take(&c->places.classifier, c->core.destinations[gate].host);
    xco_batch_clear(&c->batch);
    xco_tree_remove_gate(&c->batch, &c->gate.tree, gate);
    xco_core_remove(&c->core, gate);
    xco_vms_leave(&c->vms.shares, gate);
    c->counts.flows_removed++;
    int error = xco_gate_send(&c->gate, &c->batch, NULL);
    if (error != 0) {
        xco_queues_lose(c, error);
    }
}

// There is room again.
static void forgive(struct xco_coordinator *c) {
    let_ask(&c->places.classifier);
    c->core.more = false;
    xco_say("%s: there are gates for all destinations again", c->config.interface);
}

void xco_places_sweep(struct xco_coordinator *c, int64_t now_ns) {
    unsigned gate, done = 0;
    while (c->present && xco_background_goes_on(c, done)) {
        if (!xco_walk_take(&c->sweep, XCO_OUTSIDE, &gate)) {
            c->sweep_ns = now_ns + c->flows.idle_ns / 4;
            break;
        }
        bool used = c->core.destinations[gate].used;
        if (used && now_ns - c->places.gates[gate].active_ns > c->flows.idle_ns) {
            remove_gate(c, gate);
            done++;
        }
    }
    if (c->present && c->core.more && xco_core_has_room(&c->core)) {
        forgive(c);
    }
}

// Compares a closed gate's counts with the kernel's number: a gate that holds packets and seems
// empty would never be opened.
static void reconcile(struct xco_coordinator *c, unsigned gate, int64_t now_ns) {
    const uint64_t lost = c->places.gates[gate].lost;
    struct xco_passage passage = xco_classifier_passage(&c->places.classifier, gate, now_ns);
    uint64_t backlog = asked(c, gate, &passage, now_ns);
    if (c->present && c->places.gates[gate].lost != lost) {
        xco_core_look(&c->core, now_ns, gate, backlog < UINT32_MAX ? (uint32_t)backlog : UINT32_MAX,
                      passage.left);
    }
}

static void reconcile_piece(struct xco_coordinator *c, int64_t now_ns) {
    unsigned gate, done = 0;
    while (c->present && xco_background_goes_on(c, done) &&
           xco_walk_take(&c->reconciled, XCO_OUTSIDE, &gate)) {
        const struct xco_destination *destination = &c->core.destinations[gate];
        if (destination->used && destination->applied_bps == 0) {
            reconcile(c, gate, now_ns);
            done++;
        }
    }
}

void xco_places_verify(struct xco_coordinator *c) {
    int stands = xco_gate_stands(&c->gate);
    if (stands != 1) {
        xco_queues_lose(c, stands < 0 ? stands : -ENOENT);
    } else if (!c->config.tree.paced) {
        reconcile_piece(c, xco_now_ns());
    }
}
