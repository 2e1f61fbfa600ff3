// The tree of queues on a host's outgoing interface, as requests to the kernel.
#include "qdisc/tree.h"

#include <string.h>

#include <arpa/inet.h>
#include <linux/pkt_sched.h>

#include "qdisc/handles.h"
#include "qdisc/parts.h"
#include "qdisc/sources.h"

#define CLASS_SMALL (XCO_ROOT | 2u)
#define CLASS_NEWCOMERS (XCO_ROOT | 3u)
#define CLASS_GATE(gate) (XCO_ROOT | (0x10u + (gate)))
#define GATE(gate) ((0x7d00u + (gate)) << 16)

#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

#define PRIORITY_SMALL 1u // of filters: the lowest number is tried first
#define PRIORITY_SMALL_6 2u
#define PRIORITY_FLOWS 0x100u
#define PRIORITY_NEWCOMERS 0xf000u
#define PRIORITY_NEWCOMERS_6 0xf001u

#define TURN_NEWCOMERS 2u // among classes that all have a backlog
#define TURN_GATES 3u
#define BURST_NS 1000000u // of the classes beside the gates

#define CUTTING_BPS 100000000000u // a bucket at this rate only cuts merged packets into frames
#define CLOSED_BPS 1000000u // checks a closed gate twice a second
#define CLOSED_MPU 65000u   // more than any bucket holds
#define REFILL 1000u         // a slice's bucket is refilled at this part of its rate
#define REFILL_LONG 400u     // the same for longer slices: the kernel limits a bucket's time
#define SHORT_NS 12000000    // slices are 10 ms at most (controller/config.c)

static void add_class(struct xco_batch *batch, const struct xco_tree *tree, uint32_t id,
                      uint64_t rate_bps, uint32_t priority) {
    xco_part_class(
        batch, tree, id, XCO_MAKE,
        &(struct xco_class){.rate_bps = rate_bps, .burst_ns = BURST_NS, .priority = priority});
}

// Without a program: u32 filters separate small packets and newcomers.
static void build_filters(struct xco_batch *batch, const struct xco_tree *tree) {
    uint32_t small = 0xffffu & ~(tree->small_bytes - 1);
    struct xco_key small_4 = {htonl(small), 0, 0}, small_6 = {htonl(small << 16), 0, 4};
    xco_part_filter(batch, tree->interface, CLASS_SMALL,
                    &(struct xco_filter){PRIORITY_SMALL, ETH_P_IP, &small_4, 1});
    xco_part_filter(batch, tree->interface, CLASS_SMALL,
                    &(struct xco_filter){PRIORITY_SMALL_6, ETH_P_IPV6, &small_6, 1});
    struct xco_key any = {0, 0, 0};
    xco_part_filter(batch, tree->interface, CLASS_NEWCOMERS,
                    &(struct xco_filter){PRIORITY_NEWCOMERS, ETH_P_IP, &any, 1});
    xco_part_filter(batch, tree->interface, CLASS_NEWCOMERS,
                    &(struct xco_filter){PRIORITY_NEWCOMERS_6, ETH_P_IPV6, &any, 1});
}

void xco_tree_build(struct xco_batch *batch, const struct xco_tree *tree) {
    xco_part_htb(batch, tree->interface, TC_H_ROOT, XCO_ROOT, CLASS_SMALL & 0xffffu);
    // limited as well: root of a container's user namespace may write any priority (socket(7)), and
    // devices like macvlan pass it on
    add_class(batch, tree, XCO_CLASS_CONTROL, tree->small_bps, 0);
    add_class(batch, tree, CLASS_SMALL, tree->small_bps, 1);
    add_class(batch, tree, CLASS_NEWCOMERS, tree->newcomer_bps, TURN_NEWCOMERS);
    add_class(batch, tree, XCO_CLASS_KICK, XCO_UNLIMITED_BPS, 0);
    xco_part_fifo(batch, tree->interface, CLASS_NEWCOMERS, tree->newcomer_bytes);
    xco_part_fifo(batch, tree->interface, XCO_CLASS_KICK, 1);
    if (tree->classify == 0) {
        build_filters(batch, tree);
    }
    xco_tree_add_gate(batch, tree, XCO_OUTSIDE);
}

void xco_tree_remove(struct xco_batch *batch, int interface) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = TC_H_ROOT, .tcm_handle = XCO_ROOT};
    xco_batch_message(batch, RTM_DELQDISC, 0, &what);
}

void xco_tree_classify(struct xco_batch *batch, const struct xco_tree *tree) {
    xco_part_program(batch, tree->interface, EGRESS, tree->classify, "xco_classify", true);
}

void xco_tree_unclassify(struct xco_batch *batch, int interface) {
    xco_part_remove_program(batch, interface, EGRESS);
}

void xco_tree_ask_classifier(struct xco_batch *batch, int interface) {
    xco_part_ask_program(batch, interface, EGRESS);
}

const char *xco_tree_part(const struct xco_batch *batch, uint32_t place) {
    const struct nlmsghdr *header = (const void *)batch->bytes;
    for (; header->nlmsg_seq < place && place <= batch->count;) {
        header = (const void *)((const uint8_t *)header + NLMSG_ALIGN(header->nlmsg_len));
    }
    if (header->nlmsg_type == RTM_NEWTCLASS) {
        return "htb";
    }
    // the kind is the first attribute of each request that creates something
    const uint8_t *kind = (const uint8_t *)header + NLMSG_SPACE(sizeof(struct tcmsg));
    return RTA_DATA((const struct rtattr *)(const void *)kind);
}

void xco_tree_set_newcomers(struct xco_batch *batch, const struct xco_tree *tree,
                            uint64_t rate_bps) {
    xco_part_class(batch, tree, CLASS_NEWCOMERS, XCO_CHANGE,
                   &(struct xco_class){
                       .rate_bps = rate_bps, .burst_ns = BURST_NS, .priority = TURN_NEWCOMERS});
}

static struct xco_bucket closed_bucket(const struct xco_tree *tree) {
    return (struct xco_bucket){
        .rate_bps = CLOSED_BPS,
        .mpu = CLOSED_MPU,
        .burst_bytes = tree->frame_bytes,
        .limit_bytes = tree->queue_bytes,
    };
}

void xco_tree_add_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate) {
    if (tree->paced) {
        return;
    }
    add_class(batch, tree, CLASS_GATE(gate), XCO_UNLIMITED_BPS, TURN_GATES);
    struct xco_bucket closed = closed_bucket(tree);
    xco_part_bucket(batch, tree->interface, CLASS_GATE(gate), GATE(gate), NLM_F_CREATE, &closed);
    xco_part_htb(batch, tree->interface, GATE(gate) | 1u, SHARE(gate), xco_sources_default(tree));
    if (tree->share != 0) {
        xco_sources_add(batch, tree, gate);
    }
}

void xco_tree_remove_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate) {
    if (tree->paced) {
        return;
    }
    xco_part_remove_class(batch, tree->interface, CLASS_GATE(gate));
}

// Returns whether the pair is IPv4, with its keys for a u32 filter (tc-u32(8)).
static size_t keys_of(const struct xco_pair *pair, struct xco_key keys[8]) {
    const uint32_t *source = pair->source.s6_addr32, *destination = pair->destination.s6_addr32;
    if (IN6_IS_ADDR_V4MAPPED(&pair->source)) {
        keys[0] = (struct xco_key){UINT32_MAX, source[3], 12};
        keys[1] = (struct xco_key){UINT32_MAX, destination[3], 16};
        return 2;
    }
    for (int word = 0; word < 4; word++) {
        keys[word] = (struct xco_key){UINT32_MAX, source[word], 8 + 4 * word};
        keys[4 + word] = (struct xco_key){UINT32_MAX, destination[word], 24 + 4 * word};
    }
    return 8;
}

static uint16_t protocol_of(const struct xco_pair *pair) {
    return IN6_IS_ADDR_V4MAPPED(&pair->source) ? ETH_P_IP : ETH_P_IPV6;
}

void xco_tree_add_flow(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                       unsigned flow, const struct xco_pair *pair) {
    struct xco_key keys[8];
    struct xco_filter filter = {PRIORITY_FLOWS + flow, protocol_of(pair), keys, 0};
    filter.count = keys_of(pair, keys);
    add_class(batch, tree, CLASS_FLOW(gate, flow), XCO_UNLIMITED_BPS, 0);
    xco_part_fifo(batch, tree->interface, CLASS_FLOW(gate, flow), tree->queue_bytes);
    xco_part_filter(batch, tree->interface, CLASS_FLOW(gate, flow), &filter);
    xco_part_filter(batch, tree->interface, CLASS_GATE(gate), &filter);
}

void xco_tree_remove_flow(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                          unsigned flow, const struct xco_pair *pair) {
    struct xco_filter filter = {PRIORITY_FLOWS + flow, protocol_of(pair), NULL, 0};
    xco_part_remove_filter(batch, tree->interface, XCO_ROOT, &filter);
    xco_part_remove_filter(batch, tree->interface, SHARE(gate), &filter);
    xco_part_remove_class(batch, tree->interface, CLASS_FLOW(gate, flow));
}

// Returns what a rate sends within a time, but at least two frames: a bucket smaller than a frame
// would drop it.
static uint32_t volume(const struct xco_tree *tree, uint64_t rate_bps, uint64_t time_ns) {
    uint64_t bytes = rate_bps / 8000 * time_ns / 1000000;
    uint64_t least = 2ull * tree->frame_bytes;
    return bytes < least ? (uint32_t)least : bytes > INT32_MAX ? INT32_MAX : (uint32_t)bytes;
}

// Returns the rate of an open gate that is extended. It is lower by the burst that the kernel
// refills at the change, spread over half of the granted time; after that the gate is extended
// again.
static uint64_t rate_on(uint64_t rate_bps, uint32_t burst_bytes, int64_t lasts_ns) {
    uint64_t burst_bps = (uint64_t)burst_bytes * 8 * 1000000000u / (uint64_t)(lasts_ns / 2 + 1);
    return burst_bps < rate_bps / 2 ? rate_bps - burst_bps : rate_bps / 2;
}

// Returns the bucket of a slice's gate: no more tokens than the slice has room for.
static struct xco_bucket slice_bucket(const struct xco_tree *tree,
                                      const struct xco_opening *opening) {
    const uint64_t rate_bps = opening->rate_bps;
    const int64_t lasts_ns = opening->lasts_ns;
    uint64_t refill = rate_bps / (lasts_ns <= SHORT_NS ? REFILL : REFILL_LONG);
    uint32_t burst = volume(tree, rate_bps, tree->burst_ns);
    return (struct xco_bucket){
        .rate_bps = refill > XCO_SLOWEST_BPS ? refill : XCO_SLOWEST_BPS,
        .peak_bps = opening->goes_on ? rate_on(rate_bps, burst, lasts_ns) : rate_bps,
        .peak_bytes = burst,
        .burst_bytes = volume(tree, rate_bps, (uint64_t)lasts_ns),
        .limit_bytes = tree->queue_bytes,
    };
}

static struct xco_bucket cutting_bucket(const struct xco_tree *tree) {
    return (struct xco_bucket){
        .rate_bps = CUTTING_BPS,
        .burst_bytes = 2 * tree->frame_bytes,
        .limit_bytes = tree->queue_bytes,
    };
}

static struct xco_bucket bucket_of(const struct xco_tree *tree, const struct xco_opening *opening) {
    if (opening->rate_bps == 0) {
        return closed_bucket(tree);
    }
    return xco_lasts(opening) ? cutting_bucket(tree) : slice_bucket(tree, opening);
}

static void limit_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                       uint64_t rate_bps, uint64_t burst_ns) {
    xco_part_class(
        batch, tree, CLASS_GATE(gate), XCO_CHANGE,
        &(struct xco_class){.rate_bps = rate_bps, .burst_ns = burst_ns, .priority = TURN_GATES});
}

void xco_tree_set_gate(struct xco_batch *batch, const struct xco_tree *tree, unsigned gate,
                       const struct xco_opening *opening) {
    const bool lasts = xco_lasts(opening);
    if (lasts) { // before the bucket opens
        limit_gate(batch, tree, gate, opening->rate_bps, tree->burst_ns);
    }
    if (!lasts || !opening->lasted) {
        const struct xco_bucket bucket = bucket_of(tree, opening);
        xco_part_bucket(batch, tree->interface, CLASS_GATE(gate), GATE(gate), 0, &bucket);
    }
    if (!lasts && opening->lasted) {
        limit_gate(batch, tree, gate, XCO_UNLIMITED_BPS, BURST_NS);
    }
}

static void ask(struct xco_batch *batch, uint16_t type, int interface, uint32_t parent,
                uint32_t handle) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent, .tcm_handle = handle};
    // without ECHO the kernel notifies all processes but the requester
    xco_batch_message(batch, type, NLM_F_ECHO, &what);
}

void xco_tree_ask_gate(struct xco_batch *batch, int interface, unsigned gate) {
    ask(batch, RTM_GETQDISC, interface, 0, GATE(gate));
}

void xco_tree_ask_flow(struct xco_batch *batch, int interface, unsigned gate, unsigned flow) {
    ask(batch, RTM_GETTCLASS, interface, 0, CLASS_FLOW(gate, flow));
}

void xco_tree_ask_newcomers(struct xco_batch *batch, int interface) {
    ask(batch, RTM_GETTCLASS, interface, 0, CLASS_NEWCOMERS);
}

void xco_tree_ask_root(struct xco_batch *batch, int interface) {
    ask(batch, RTM_GETQDISC, interface, TC_H_ROOT, 0);
}

int xco_tree_gate_of(uint32_t handle) {
    uint32_t gate = (handle >> 16) - 0x7d00u;
    return (handle & 0xffffu) == 0 && gate < XCO_GATES ? (int)gate : -1;
}

int xco_tree_flow_of(uint32_t handle) {
    uint32_t gate = (handle >> 16) - 0x7e00u, flow = (handle & 0xffffu) - 0x10u;
    return gate < XCO_GATES && flow < XCO_FLOWS ? (int)flow : -1;
}
