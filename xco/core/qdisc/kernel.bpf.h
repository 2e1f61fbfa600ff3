/* The fields needed of the kernel's structures, at any offset. */
#ifndef XCO_QDISC_KERNEL_BPF_H
#define XCO_QDISC_KERNEL_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
    unsigned int inum;
};
struct net {
    struct ns_common ns;
};
typedef struct {
    struct net *net;
} possible_net_t;
struct net_device {
    int ifindex;
    possible_net_t nd_net;
};
struct netdev_queue {
    struct net_device *dev;
};
struct gnet_stats_queue {
    __u32 requeues;
};
struct Qdisc {
    __u32 handle;
    struct gnet_stats_queue qstats;
};
struct sk_buff {
    struct sk_buff *next;
    __u32 priority;
    char cb[48];
};
#pragma clang attribute pop

#endif
