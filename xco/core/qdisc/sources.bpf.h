/* Which queue behind a gate a packet belongs to: by the VM that it comes from. */
#ifndef XCO_QDISC_SOURCES_BPF_H
#define XCO_QDISC_SOURCES_BPF_H

/* Slots of listed VMs by the index of their interface. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, XCO_SLOTS);
    __type(key, __u32);
    __type(value, __u32);
} vms SEC(".maps");

/* Bytes that entered each queue, by slot. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, (XCO_QUEUE_OUTSIDE + 1) * XCO_SLOTS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} slots SEC(".maps");

/* Returns the slot of a packet: of the host itself, of a listed VM, or of some that are not. */
static __always_inline __u32 slot_of(struct __sk_buff *skb) {
    __u32 interface = skb->ingress_ifindex;
    if (!interface) {
        return XCO_SLOT_HOST;
    }
    __u32 *slot = bpf_map_lookup_elem(&vms, &interface);
    if (slot) {
        return *slot;
    }
    __u64 spread = interface * 2654435761u; /* Fibonacci hashing */
    return XCO_SLOT_UNLISTED + (__u32)(spread * (XCO_SOURCES - XCO_SLOT_UNLISTED) >> 32);
}

static __always_inline void count_slot(__u32 queue, __u32 slot, __u32 bytes) {
    __u32 place = queue * XCO_SLOTS + slot;
    __u64 *entered = queue <= XCO_QUEUE_OUTSIDE ? bpf_map_lookup_elem(&slots, &place) : 0;
    if (entered) {
        __sync_fetch_and_add(entered, bytes);
    }
}

/* Distinguishes the sources behind a gate: by the interface that a packet came from, which no VM
 * can forge; for the host itself, by the flow if the kernel knows it, or else the socket. */
static __always_inline __u32 source_of(struct __sk_buff *skb) {
    __u32 source = skb->ingress_ifindex;
    if (!source) {
        source = skb->hash;
    }
    return source ? source : (__u32)bpf_get_socket_cookie(skb);
}

static __always_inline __u32 spread_of(struct __sk_buff *skb) {
    __u32 spread = source_of(skb) * 2654435761u; /* Fibonacci hashing */
    return spread >> (32 - XCO_SOURCE_BITS);
}

#endif
