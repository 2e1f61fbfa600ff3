/* Token buckets that are exact on any number of CPUs, with integers only.
 *
 * The level of a bucket is time: each packet adds its cost, and the clock drains the bucket. A
 * packet passes while there is room for one packet or, where bytes are counted, any room at all.
 * This is the generic cell rate algorithm (ITU-T I.371) as a leaky bucket. Unit: 2^-16 ns.
 *
 * The last part of a bucket is kept for sparse flows: a flood of evenly spaced packets would take
 * each place as soon as there is one, and a flow that sends little would lose more than its share.
 *
 * A joined packet (segmentation offload) passes when there is room for one of its segments, and
 * costs all of them: the bucket overflows by at most one joined packet, and later packets wait for
 * that. Otherwise a burst shorter than a joined packet would starve TCP. A packet with more
 * segments than any honest sender joins is refused without a cost: otherwise it would block all
 * other traffic for as long as its segments take. */
#pragma once

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
    FRACTION = 16,
    LARGEST_FRAME = 1518,
    MOST_SEGMENTS = 512, /* the largest joined packet, 512 KiB, holds 362 of 1448 bytes */
};

#define SECOND (1000000000ULL << FRACTION)

enum which { ORDINARY, EXEMPT, SHARE, BUCKETS };

enum { INTERFACES = 256 };

/* Of a bucket: its flows, and behind them one for all together that are not sparse. */
enum { FLOWS = 1024, OTHERS = FLOWS, SLOTS };

/* The reserve: a 32nd of a bucket; or two joined packets, which overflow into it, if these are no
 * more than an eighth; none if that is only a few packets. */
enum { SMALLEST_PART = 32, LARGEST_PART = 8, JOINED = 128, FEW = 16 };

/* There may be any number of sparse flows, also with forged addresses. So that these do not take
 * all, the others may fill the whole bucket, too, at a quarter of the rate. */
enum { PART_OF_OTHERS = 4 };

/* Written by user space (xtc/shield/bucket.py); a depth of 0 means no limit for ordinary traffic,
 * no exemption for exempt traffic, and no share of an interface. */
struct terms {
    __u64 per_packet;
    __u64 per_byte;
    __u64 depth;
};

struct bucket {
    struct bpf_spin_lock lock;
    __u32 unused;
    __u64 at; /* ns; the last time it was drained */
    __u64 level;
    __u64 passed; /* packets; joined ones count by segments */
    __u64 refused;
    __u64 refused_exempt; /* of these, exempt ones above their own rate */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, BUCKETS);
    __type(key, __u32);
    __type(value, struct terms);
} terms SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, BUCKETS);
    __type(key, __u32);
    __type(value, struct bucket);
} buckets SEC(".maps");

/* Usage of each interface's share, by interface number; user space creates the entries. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, INTERFACES);
    __type(key, __u32);
    __type(value, struct bucket);
} shares SEC(".maps");

struct load {
    struct __sk_buff *skb;
    __u64 segments;
    __u64 bytes;
    __u64 now;
    __u32 interface;
    bool exempt;
};

/* What a flow has sent while a bucket was nearly full, by a hash of its addresses and ports. Its
 * own bucket is as deep as that one, and a packet costs as much more in it as the reserve is
 * smaller. Ordinary and exempt traffic have flows of their own. There is no lock: what two CPUs
 * write at the same time may count once, which lets a flow have more of the reserve, and never of
 * the rate. */
struct flow {
    __u64 at; /* ns */
    __u64 level;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, (SHARE * SLOTS));
    __type(key, __u32);
    __type(value, struct flow);
} flows SEC(".maps");

static __always_inline __u64 drained(__u64 level, __u64 at, __u64 now) {
    __u64 elapsed = now > at ? now - at : 0;
    return elapsed > level >> FRACTION ? 0 : level - (elapsed << FRACTION);
}

static __always_inline void drain(struct bucket *bucket, __u64 now) {
    if (now <= bucket->at) {
        return; /* another CPU with a later clock value was first */
    }
    bucket->level = drained(bucket->level, bucket->at, now);
    bucket->at = now;
}

static __always_inline __u64 cost_of(const struct load *load, const struct terms *set) {
    return load->segments * set->per_packet + load->bytes * set->per_byte;
}

/* Returns the part of a bucket that only sparse flows may fill. */
static __always_inline __u64 reserve_of(const struct terms *set, __u64 depth) {
    __u64 packet = set->per_packet + set->per_byte * LARGEST_FRAME;
    __u64 reserve = depth / SMALLEST_PART;
    if (reserve < JOINED * packet) {
        reserve = JOINED * packet < depth / LARGEST_PART ? JOINED * packet : depth / LARGEST_PART;
    }
    return reserve >= FEW * packet ? reserve : 0;
}

/* Adds a cost to the bucket of a flow, or of others; returns false if it is full. */
static __always_inline bool pay(__u32 slot, __u64 cost, __u64 depth, __u64 now) {
    struct flow *flow = bpf_map_lookup_elem(&flows, &slot);
    if (!flow) {
        return false;
    }
    __u64 level = drained(flow->level, flow->at, now);
    bool room = level <= depth;
    flow->at = now;
    flow->level = room ? level + cost : level;
    return room;
}

/* Whether a packet may fill the reserve: its flow has sent less than a small part of the rate while
 * the bucket was nearly full, or the others together less than theirs. */
static __always_inline bool may_fill(enum which which, const struct load *load, __u64 cost,
                                     __u64 depth, __u64 reserve) {
    __u32 first = which * SLOTS, own = bpf_get_hash_recalc(load->skb) % FLOWS;
    return pay(first + own, depth / reserve * cost, depth, load->now) ||
           pay(first + OTHERS, PART_OF_OTHERS * cost, reserve, load->now);
}

/* Returns up to where a packet may fill a bucket: sparse flows find room next to others, and a flow
 * that begins has the whole bucket. A packet that is refused anyway counts in no flow. */
static __always_inline __u64 limit_of(enum which which, const struct bucket *bucket,
                                      const struct terms *set, __u64 depth,
                                      const struct load *load) {
    __u64 reserve = reserve_of(set, depth);
    __u64 level = drained(bucket->level, bucket->at, load->now); /* a race costs one packet */
    if (!reserve || load->segments > MOST_SEGMENTS || level + set->per_packet <= depth - reserve ||
        may_fill(which, load, cost_of(load, set), depth, reserve)) {
        return depth;
    }
    return depth - reserve;
}

/* Adds the cost of a packet; returns false if there is no room up to the depth. */
static __always_inline bool fill(struct bucket *bucket, const struct terms *set, __u64 depth,
                                 const struct load *load) {
    __u64 cost = cost_of(load, set);
    __u64 least = set->per_packet; /* not its bytes: large frames must not be dropped first */

    bpf_spin_lock(&bucket->lock);
    drain(bucket, load->now);
    bool fits = !depth || (load->segments <= MOST_SEGMENTS && bucket->level + least <= depth);
    if (fits) {
        bucket->level += cost;
        bucket->passed += load->segments;
    } else {
        bucket->refused += load->segments;
        bucket->refused_exempt += load->exempt ? load->segments : 0;
    }
    bpf_spin_unlock(&bucket->lock);
    return fits;
}

/* Whether an interface takes more than its share of a common bucket. */
static __always_inline bool is_greedy(const struct load *load) {
    __u32 which = SHARE, interface = load->interface;
    struct terms *set = bpf_map_lookup_elem(&terms, &which);
    if (!set || !set->depth) {
        return false;
    }
    struct bucket *share = bpf_map_lookup_elem(&shares, &interface);
    return share && !fill(share, set, set->depth, load);
}

static __always_inline bool take(enum which which, const struct load *load) {
    __u32 key = which;
    struct terms *set = bpf_map_lookup_elem(&terms, &key);
    struct bucket *bucket = bpf_map_lookup_elem(&buckets, &key);
    if (!set || !bucket || (which == EXEMPT && !set->depth)) {
        return which == ORDINARY;
    }
    /* A greedy interface may fill half of the bucket: the others always find room, and it can use
     * all the room that they leave. */
    __u64 depth = which == ORDINARY && is_greedy(load) ? set->depth / 2 : set->depth;
    if (depth) {
        depth = limit_of(which, bucket, set, depth, load);
    }
    return fill(bucket, set, depth, load);
}

/* Charges exempt traffic to ordinary traffic, for a second at most. */
static __always_inline void charge(const struct load *load) {
    __u32 key = ORDINARY;
    struct terms *set = bpf_map_lookup_elem(&terms, &key);
    struct bucket *bucket = bpf_map_lookup_elem(&buckets, &key);
    if (!set || !bucket || !set->depth) {
        return;
    }
    __u64 cost = cost_of(load, set);
    __u64 most = set->depth + SECOND;

    bpf_spin_lock(&bucket->lock);
    drain(bucket, load->now);
    bucket->level += cost;
    if (bucket->level > most) {
        bucket->level = most;
    }
    bpf_spin_unlock(&bucket->lock);
}

/* Exempt traffic has its own bucket; the excess is ordinary traffic. Exempt packets that pass also
 * count as ordinary traffic, so that both together stay within the limit. */
static __always_inline bool passes(const struct load *load) {
    if (load->exempt && take(EXEMPT, load)) {
        charge(load);
        return true;
    }
    return take(ORDINARY, load);
}
