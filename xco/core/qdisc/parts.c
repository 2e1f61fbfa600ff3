// Single queues, classes and filters as requests to the kernel; qdisc/tree.c composes them.
#include "qdisc/parts.h"

#include <string.h>

#include <arpa/inet.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>

#define ETHERNET 1u        // TC_LINKLAYER_ETHERNET: the kernel needs no table of costs
#define TICK_NS 64u        // PSCHED_SHIFT 6: the unit of the kernel's bursts
#define MAX_TICKS (1u << 28)
#define PROGRAM_PRIORITY 0x7c01u // of our BPF filters among others: late, after those that act
#define FQ_PACKETS 65536u // most that may wait: the horizon limits them earlier
#define QUANTA 2u          // frames that a class sends before the next one's turn

static void begin(struct xco_batch *batch, uint16_t type, uint16_t flags, const struct tcmsg *what,
                  const char *kind) {
    xco_batch_message(batch, type, flags, what);
    xco_batch_attribute(batch, TCA_KIND, kind, strlen(kind) + 1);
}

// Returns the rate for the kernel's old field of 32 bits, in bytes/s; all ones: see the new field.
static uint32_t old_rate(uint64_t bytes_per_s) {
    return bytes_per_s < UINT32_MAX ? (uint32_t)bytes_per_s : UINT32_MAX;
}

// Returns how long so many bytes take, in the kernel's ticks, rounded up.
static uint32_t ticks(uint64_t bytes, uint64_t bytes_per_s) {
    uint64_t ns = bytes * 1000000000u / bytes_per_s;
    uint64_t count = ns / TICK_NS + 1;
    return count < MAX_TICKS ? (uint32_t)count : MAX_TICKS;
}

void xco_part_htb(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                  uint32_t otherwise) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent, .tcm_handle = handle};
    struct tc_htb_glob options = {.version = 3, .rate2quantum = 10, .defcls = otherwise};
    uint16_t flags = NLM_F_CREATE | (parent == TC_H_ROOT ? NLM_F_EXCL : NLM_F_REPLACE);
    begin(batch, RTM_NEWQDISC, flags, &what, "htb");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_HTB_INIT, &options, sizeof options);
    xco_batch_end_nest(batch, nest);
}

static uint32_t burst_ticks(const struct xco_tree *tree, uint64_t rate, uint64_t burst_ns) {
    uint64_t burst = rate / 1000u * burst_ns / 1000000u, least = 2ull * tree->frame_bytes;
    return ticks(burst < least ? least : burst, rate);
}

void xco_part_class(struct xco_batch *batch, const struct xco_tree *tree, uint32_t id,
                    uint16_t flags, const struct xco_class *class) {
    struct tcmsg what = {.tcm_ifindex = tree->interface, .tcm_handle = id};
    what.tcm_parent = (id & 0xffff0000u) | class->parent;
    uint64_t rate = class->rate_bps / 8, ceil = class->ceil_bps > 0 ? class->ceil_bps / 8 : rate;
    struct tc_htb_opt options = {.prio = class->priority, .quantum = QUANTA * tree->frame_bytes};
    options.quantum = class->quantum > 0 ? class->quantum : options.quantum;
    options.rate.rate = old_rate(rate);
    options.ceil.rate = old_rate(ceil);
    options.rate.linklayer = options.ceil.linklayer = ETHERNET;
    options.buffer = burst_ticks(tree, rate, class->burst_ns);
    options.cbuffer = burst_ticks(tree, ceil, class->burst_ns);
    begin(batch, RTM_NEWTCLASS, flags, &what, "htb");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_HTB_PARMS, &options, sizeof options);
    if (rate >= UINT32_MAX) {
        xco_batch_attribute(batch, TCA_HTB_RATE64, &rate, sizeof rate);
    }
    if (ceil >= UINT32_MAX) {
        xco_batch_attribute(batch, TCA_HTB_CEIL64, &ceil, sizeof ceil);
    }
    xco_batch_end_nest(batch, nest);
}

void xco_part_fq(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                 uint16_t flags) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent, .tcm_handle = handle};
    uint32_t packets = FQ_PACKETS;
    begin(batch, RTM_NEWQDISC, flags, &what, "fq");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_FQ_PLIMIT, &packets, sizeof packets);
    xco_batch_attribute(batch, TCA_FQ_FLOW_PLIMIT, &packets, sizeof packets);
    xco_batch_end_nest(batch, nest);
}

void xco_part_mq(struct xco_batch *batch, int interface, uint32_t handle, uint16_t flags) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = TC_H_ROOT, .tcm_handle = handle};
    begin(batch, RTM_NEWQDISC, flags, &what, "mq");
}

void xco_part_fifo(struct xco_batch *batch, int interface, uint32_t parent, uint32_t limit_bytes) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent};
    struct tc_fifo_qopt options = {.limit = limit_bytes};
    begin(batch, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &what, "bfifo");
    xco_batch_attribute(batch, TCA_OPTIONS, &options, sizeof options);
}

void xco_part_bucket(struct xco_batch *batch, int interface, uint32_t parent, uint32_t handle,
                     uint16_t flags, const struct xco_bucket *bucket) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent, .tcm_handle = handle};
    uint64_t rate = bucket->rate_bps / 8;
    struct tc_tbf_qopt options = {.limit = bucket->limit_bytes};
    options.rate.rate = old_rate(rate);
    options.rate.mpu = (uint16_t)bucket->mpu;
    options.rate.linklayer = ETHERNET;
    options.buffer = ticks(bucket->burst_bytes, rate);
    uint64_t peak = bucket->peak_bps / 8;
    if (peak > rate) {
        options.peakrate.rate = old_rate(peak);
        options.peakrate.linklayer = ETHERNET;
        options.mtu = ticks(bucket->peak_bytes, peak);
    }
    begin(batch, RTM_NEWQDISC, flags, &what, "tbf");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_TBF_PARMS, &options, sizeof options);
    if (rate >= UINT32_MAX) {
        xco_batch_attribute(batch, TCA_TBF_RATE64, &rate, sizeof rate);
    }
    if (peak >= UINT32_MAX) {
        xco_batch_attribute(batch, TCA_TBF_PRATE64, &peak, sizeof peak);
    }
    xco_batch_end_nest(batch, nest);
}

static struct tcmsg filter_message(int interface, uint32_t parent,
                                   const struct xco_filter *filter) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent};
    what.tcm_info = filter->priority << 16 | htons(filter->protocol);
    return what;
}

void xco_part_filter(struct xco_batch *batch, int interface, uint32_t class,
                     const struct xco_filter *filter) {
    struct tcmsg what = filter_message(interface, class & 0xffff0000u, filter);
    struct {
        struct tc_u32_sel head;
        struct tc_u32_key keys[8];
    } selector = {.head = {.flags = TC_U32_TERMINAL, .nkeys = (unsigned char)filter->count}};
    for (size_t i = 0; i < filter->count; i++) {
        const struct xco_key *key = &filter->keys[i];
        selector.keys[i] =
            (struct tc_u32_key){.mask = key->mask, .val = key->value, .off = key->offset};
    }
    begin(batch, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &what, "u32");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_U32_CLASSID, &class, sizeof class);
    xco_batch_attribute(batch, TCA_U32_SEL, &selector,
                        sizeof selector.head + filter->count * sizeof selector.keys[0]);
    xco_batch_end_nest(batch, nest);
}

void xco_part_remove_filter(struct xco_batch *batch, int interface, uint32_t parent,
                            const struct xco_filter *filter) {
    struct tcmsg what = filter_message(interface, parent, filter);
    xco_batch_message(batch, RTM_DELTFILTER, 0, &what);
}

void xco_part_remove_class(struct xco_batch *batch, int interface, uint32_t id) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_handle = id};
    what.tcm_parent = id & 0xffff0000u;
    xco_batch_message(batch, RTM_DELTCLASS, 0, &what);
}

static struct tcmsg program_message(int interface, uint32_t parent) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent};
    what.tcm_info = PROGRAM_PRIORITY << 16 | htons(ETH_P_ALL);
    return what;
}

void xco_part_program(struct xco_batch *batch, int interface, uint32_t parent, int program,
                      const char *name, bool direct) {
    struct tcmsg what = program_message(interface, parent);
    uint32_t descriptor = (uint32_t)program, flags = direct ? TCA_BPF_FLAG_ACT_DIRECT : 0;
    begin(batch, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &what, "bpf");
    size_t nest = xco_batch_nest(batch, TCA_OPTIONS);
    xco_batch_attribute(batch, TCA_BPF_FD, &descriptor, sizeof descriptor);
    xco_batch_attribute(batch, TCA_BPF_NAME, name, strlen(name) + 1);
    xco_batch_attribute(batch, TCA_BPF_FLAGS, &flags, sizeof flags);
    xco_batch_end_nest(batch, nest);
}

void xco_part_remove_program(struct xco_batch *batch, int interface, uint32_t parent) {
    struct tcmsg what = program_message(interface, parent);
    xco_batch_message(batch, RTM_DELTFILTER, 0, &what);
}

void xco_part_ask_program(struct xco_batch *batch, int interface, uint32_t parent) {
    struct tcmsg what = program_message(interface, parent);
    what.tcm_handle = 1; // the kernel's choice for the first of a priority
    begin(batch, RTM_GETTFILTER, NLM_F_ECHO, &what, "bpf");
}

static struct tcmsg clsact_message(int interface) {
    return (struct tcmsg){.tcm_ifindex = interface,
                          .tcm_parent = TC_H_CLSACT,
                          .tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0)};
}

void xco_part_clsact(struct xco_batch *batch, int interface) {
    struct tcmsg what = clsact_message(interface);
    begin(batch, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &what, "clsact");
}

void xco_part_remove_clsact(struct xco_batch *batch, int interface) {
    struct tcmsg what = clsact_message(interface);
    xco_batch_message(batch, RTM_DELQDISC, 0, &what);
}

void xco_part_ask_filters(struct xco_batch *batch, int interface, uint32_t parent) {
    struct tcmsg what = {.tcm_ifindex = interface, .tcm_parent = parent};
    xco_batch_message(batch, RTM_GETTFILTER, NLM_F_DUMP, &what);
}
