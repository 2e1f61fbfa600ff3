// The gates of one interface: creates, opens and closes, queries, removes them.
#include "qdisc/gate.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include <linux/pkt_sched.h>

#include "qdisc/lost.h"
#include "qdisc/paced.h"
#include "qdisc/parts.h"
#include "qdisc/tree.h"

#define DRAIN_STEP_NS 500000
#define BURST_NS 20000

static bool has_filters(struct xco_gate *gate, uint32_t direction) {
    struct xco_reading any;
    xco_batch_clear(&gate->batch);
    xco_part_ask_filters(&gate->batch, gate->tree.interface, TC_H_MAKE(TC_H_CLSACT, direction));
    return xco_gate_ask(gate, &gate->batch, &any, 1) != 0;
}

// Removes the classifier, and the hook with it if no other program has a filter there.
static void unclassify(struct xco_gate *gate) {
    xco_batch_clear(&gate->batch);
    xco_tree_unclassify(&gate->batch, gate->tree.interface);
    if (xco_gate_send(gate, &gate->batch, NULL) == 0 && !has_filters(gate, TC_H_MIN_INGRESS) &&
        !has_filters(gate, TC_H_MIN_EGRESS)) {
        xco_batch_clear(&gate->batch);
        xco_part_remove_clsact(&gate->batch, gate->tree.interface);
        xco_gate_send(gate, &gate->batch, NULL);
    }
}

// Attaches the classifier before the tree. One that a killed coordinator left went with its tree.
static int classify(struct xco_gate *gate) {
    xco_batch_clear(&gate->batch);
    xco_part_clsact(&gate->batch, gate->tree.interface);
    int error = xco_gate_send(gate, &gate->batch, NULL);
    if (error != 0 && error != -EEXIST) {
        gate->lacking = "clsact";
        return error;
    }
    xco_batch_clear(&gate->batch);
    xco_tree_classify(&gate->batch, &gate->tree);
    int refused = xco_gate_send(gate, &gate->batch, NULL);
    if (refused != 0 && error == 0) {
        xco_batch_clear(&gate->batch);
        xco_part_remove_clsact(&gate->batch, gate->tree.interface);
        xco_gate_send(gate, &gate->batch, NULL);
    }
    return refused;
}

int xco_gate_remove(struct xco_gate *gate) {
    struct xco_stake before = xco_stake_read(gate);
    unclassify(gate);
    xco_batch_clear(&gate->batch);
    xco_tree_remove(&gate->batch, gate->tree.interface);
    int error = xco_gate_send(gate, &gate->batch, NULL);
    before.waiting = error == 0 ? before.waiting : 0; // it is in the root of another program
    xco_stake_lose(gate, &before);
    return error;
}

// Builds the tree of queues; `foreign` if another root is installed.
static int build(struct xco_gate *gate, bool *foreign) {
    uint32_t place = 0;
    xco_batch_clear(&gate->batch);
    xco_tree_build(&gate->batch, &gate->tree);
    int error = xco_gate_send(gate, &gate->batch, &place);
    *foreign = error == -EEXIST && place == 1;
    if (error != 0 && !*foreign) {
        gate->lacking = xco_tree_part(&gate->batch, place);
    }
    return error;
}

int xco_gate_make(struct xco_gate *gate) {
    // refused unless the root has our handle: then nothing of ours is there to remove
    bool foreign = false;
    int error = xco_gate_remove(gate);
    if (error == -EPERM || error == -ENODEV) {
        return error;
    }
    struct xco_stake before = xco_stake_read(gate);
    error = gate->tree.paced ? xco_gate_build_paced(gate, &foreign) : build(gate, &foreign);
    if (foreign) {
        return error;
    }
    xco_stake_lose(gate, &before);
    if (error == 0 && gate->tree.classify != 0) {
        before = xco_stake_read(gate);
        error = classify(gate);
        xco_stake_lose(gate, &before);
    }
    if (error != 0) {
        xco_gate_remove(gate);
    }
    return error;
}

int xco_gate_try_paced(const char *interface, uint64_t *lost) {
    static struct xco_gate gate; // too large for the stack
    int error = xco_gate_open(&gate, interface, &(struct xco_tree){.paced = true});
    if (error != 0) {
        return error;
    }
    error = xco_gate_make(&gate);
    if (error == 0) {
        error = xco_gate_remove(&gate);
    }
    *lost = gate.lost;
    xco_gate_close(&gate);
    return error;
}

// Queries the root; 1 and its reading, 0 if the kernel reports none, or a negative errno.
static int ask_root(struct xco_gate *gate, struct xco_reading *root) {
    struct xco_batch question;
    xco_batch_clear(&question);
    xco_tree_ask_root(&question, gate->tree.interface);
    return xco_gate_ask(gate, &question, root, 1);
}

static int ask_classifier(struct xco_gate *gate) {
    struct xco_reading filter;
    xco_batch_clear(&gate->batch);
    xco_tree_ask_classifier(&gate->batch, gate->tree.interface);
    return xco_gate_ask(gate, &gate->batch, &filter, 1);
}

static bool is_ours(const struct xco_reading *root) {
    return strcmp(root->kind, "htb") == 0 || strcmp(root->kind, "mq") == 0 ||
           strcmp(root->kind, "fq") == 0;
}

int xco_gate_stands(struct xco_gate *gate) {
    struct xco_reading root = {0};
    int count = ask_root(gate, &root);
    if (count < 0) {
        return count;
    }
    bool stands = count == 1 && root.handle == XCO_ROOT && is_ours(&root);
    return stands && (gate->tree.classify == 0 || ask_classifier(gate) == 1);
}

// Opens all existing gates (fq has none) and waits until nothing waits, or patience ends. Behind fq
// packets depart at their own times.
static void drain(struct xco_gate *gate, uint64_t line_bps, int64_t patience_ns) {
    struct xco_batch opening;
    struct xco_reading root = {0};
    bool empty = ask_root(gate, &root) != 1, tree = strcmp(root.kind, "htb") == 0;
    xco_batch_clear(&opening);
    for (unsigned k = 0; tree && k < XCO_GATES; k++) {
        xco_tree_set_gate(&opening, &gate->tree, k, &(struct xco_opening){.rate_bps = line_bps});
    }
    xco_gate_send(gate, &opening, NULL); // refused for those that do not exist
    while (patience_ns > 0 && !empty) {
        if (tree) {
            xco_gate_kick(gate);
        }
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_STEP_NS}, NULL);
        patience_ns -= DRAIN_STEP_NS;
        empty = ask_root(gate, &root) == 1 && root.backlog_bytes == 0;
    }
}

// Removes the tree of an interface that was looked up, whatever its present frame size.
static int release(struct xco_gate *gate, uint64_t line_bps, int64_t patience_ns, uint64_t *lost) {
    int error = xco_gate_open_sockets(gate);
    if (error != 0) {
        return error == -ENODEV ? 0 : error; // it disappeared since the look-up
    }
    int stands = xco_gate_stands(gate);
    if (stands > 0) {
        drain(gate, line_bps, patience_ns);
        error = xco_gate_remove(gate);
    }
    *lost = gate->lost;
    xco_gate_close(gate);
    return stands < 0 ? stands : error;
}

int xco_gate_release(const char *interface, uint64_t line_bps, int64_t patience_ns,
                     uint64_t *lost) {
    struct xco_gate gate = {.tree.burst_ns = BURST_NS};
    *lost = 0;
    strncpy(gate.name, interface, IF_NAMESIZE - 1);
    int error = xco_gate_look_up(&gate); // the tree disappeared with the interface
    return error == -ENODEV ? 0 : error != 0 ? error : release(&gate, line_bps, patience_ns, lost);
}

int xco_gate_release_index(int interface, uint64_t line_bps, int64_t patience_ns, uint64_t *lost) {
    char name[IF_NAMESIZE];
    *lost = 0;
    if (if_indextoname((unsigned)interface, name) == NULL) {
        return errno == ENXIO ? 0 : -errno;
    }
    return xco_gate_release(name, line_bps, patience_ns, lost);
}
