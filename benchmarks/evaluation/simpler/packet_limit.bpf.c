/* Passes at most LIMIT packets in each 10 ms and drops the rest: an XDP packet limit. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define WINDOW_NS 10000000ULL

struct window {
    __u64 number;
    __u64 packets;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct window);
} windows SEC(".maps");

SEC("xdp")
int packet_limit(struct xdp_md *context) {
    __u32 key = 0;
    __u64 number = bpf_ktime_get_ns() / WINDOW_NS;
    struct window *window = bpf_map_lookup_elem(&windows, &key);
    (void)context;
    if (!window) {
        return XDP_PASS;
    }
    if (window->number != number) {
        window->number = number;
        window->packets = 0;
    }
    return __sync_fetch_and_add(&window->packets, 1) < LIMIT ? XDP_PASS : XDP_DROP;
}

char packet_limit_license[] SEC("license") = "Apache-2.0";
