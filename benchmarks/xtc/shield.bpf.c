/* Alternatives to the shield for comparison: the same decision in native XDP, and a drop without a
 * decision, which shows the cost of a packet up to clsact. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "bucket.bpf.h"
#include "exempt.bpf.h"

SEC("tc") int drop_all(struct __sk_buff *skb) {
    (void)skb;
    return TC_ACT_SHOT;
}

SEC("xdp") int decide_xdp(struct xdp_md *frame) {
    void *data = (void *)(long)frame->data, *end = (void *)(long)frame->data_end;
    struct load load = {
        .segments = 1,
        .bytes = end - data,
        .now = bpf_ktime_get_ns(),
        .exempt = is_exempt(data, end),
    };
    return passes(&load) ? XDP_PASS : XDP_DROP;
}

char benchmark_license[] SEC("license") = "Apache-2.0";
