/* Departure times: each queue's packets leave one after the other, at the queue's rate.
 *
 * A queue is one number, the departure time of its next packet (CLOCK_MONOTONIC). Each packet,
 * on any CPU, atomically advances it by its transmission time at the rate. The packet waits in
 * fq, below mq one for each transmit queue; no lock is shared (docs/howto/xco-edt.md). */
#ifndef XCO_QDISC_PACE_BPF_H
#define XCO_QDISC_PACE_BPF_H

#define NS_TIMES_BITS 8000000000ull /* ns in a second, bits in a byte */
#define TRIES 4
#define NEVER 0xffffffffffffffffull

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCO_PACES);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct xco_pace);
} paces SEC(".maps");

/* Returns a queue's backlog: what its rate sends until its next packet departs. */
static __always_inline __u64 waiting_bytes(__u32 queue) {
    struct xco_pace *pace = bpf_map_lookup_elem(&paces, &queue);
    __u64 now_ns = bpf_ktime_get_ns();
    if (!pace || pace->next_ns <= now_ns) {
        return 0;
    }
    return (pace->next_ns - now_ns) * (pace->rate_bps / 1000) / (NS_TIMES_BITS / 1000);
}

/* Takes the queue's next departure time; NEVER: it is beyond the horizon. */
static __always_inline __u64 departure(struct xco_pace *pace, __u64 now_ns, __u32 bytes) {
    __u64 rate_bps = *(volatile __u64 *)&pace->rate_bps;
    if (!rate_bps) {
        return NEVER;
    }
    __u64 takes_ns = bytes * NS_TIMES_BITS / rate_bps;
#pragma unroll
    for (int i = 0; i < TRIES; i++) {
        __u64 next_ns = *(volatile __u64 *)&pace->next_ns;
        __u64 at_ns = next_ns > now_ns ? next_ns : now_ns;
        if (at_ns - now_ns > terms.horizon_ns) {
            return NEVER;
        }
        if (__sync_val_compare_and_swap(&pace->next_ns, next_ns, at_ns + takes_ns) == next_ns) {
            return at_ns;
        }
    }
    /* other CPUs were faster each time, so the queue is not empty */
    return __sync_fetch_and_add(&pace->next_ns, takes_ns);
}

/* Sets a packet's departure time; false if the packet must be dropped. A socket may ask for a
 * later time (TCP's pacing, SO_TXTIME), within the horizon: that delays only its own packet. */
static __always_inline int depart(struct __sk_buff *skb, __u32 queue) {
    struct xco_pace *pace = bpf_map_lookup_elem(&paces, &queue);
    __u64 now_ns = bpf_ktime_get_ns(), wanted_ns = skb->tstamp;
    __u64 at_ns = pace ? departure(pace, now_ns, skb->wire_len) : NEVER;
    if (at_ns == NEVER) {
        if (pace) {
            __sync_fetch_and_add(&pace->dropped_bytes, skb->wire_len);
        }
        return 0;
    }
    __sync_fetch_and_add(&pace->sent_bytes, skb->wire_len);
    skb->tstamp = wanted_ns > at_ns && wanted_ns - now_ns <= terms.horizon_ns ? wanted_ns : at_ns;
    return 1;
}

#endif
