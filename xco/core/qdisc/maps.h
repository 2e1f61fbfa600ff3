/* Memory shared by the classifier's BPF programs and the coordinator: keys and values of the
 * maps. */
#ifndef XCO_QDISC_MAPS_H
#define XCO_QDISC_MAPS_H

#include <linux/types.h>

#include "common/place.h"

#define XCO_CLASS_ROOT 0x7c010000u
#define XCO_MINOR_CONTROL 1u
#define XCO_MINOR_SMALL 2u
#define XCO_MINOR_NEWCOMERS 3u
#define XCO_MINOR_KICK 4u
#define XCO_MINOR_GATES 0x10u /* of gate 0 */
#define XCO_SHARE_MAJOR 0x7e00u /* of the queues that share gate 0 */
#define XCO_SOURCE_BITS 3u
#define XCO_SOURCES (1u << XCO_SOURCE_BITS) /* queues behind each gate */
#define XCO_SLOTS 32u /* queues behind each gate with shares by VM: the host's, unlisted, listed */
#define XCO_SLOT_HOST 0u
#define XCO_SLOT_UNLISTED 1u /* the first of several, up to XCO_SOURCES */
#define XCO_QUEUES 66u /* 64 gates, that of unlisted destinations, and the newcomers */
#define XCO_QUEUE_OUTSIDE 64u
#define XCO_QUEUE_NEWCOMERS 65u
#define XCO_PACES 68u /* paced queues with departure times: these, and */
#define XCO_PACE_SMALL 66u
#define XCO_PACE_CONTROL 67u

/* A destination host. */
struct xco_target {
    __u32 gate; /* its gate's number + 1; 0: it has none */
    __u32 wanted; /* a notice that it wants one was sent */
    __u64 since_ns; /* when the window began */
    __u64 bytes; /* sent to it in the window */
    __u64 refuses_ns; /* no new TCP connection to it until then, CLOCK_MONOTONIC */
    __u64 refused; /* SYNs dropped for that */
};

/* Bytes that a queue has taken and passed on since its creation. */
struct xco_passage {
    __u64 entered;
    __u64 left;
    __u64 tell; /* whether to notify when something enters */
};

/* A queue of packets with departure times; it has a cache line of its own. */
struct xco_pace {
    __u64 next_ns; /* when its next packet departs, CLOCK_MONOTONIC */
    __u64 rate_bps; /* 0: everything is dropped */
    __u64 sent_bytes; /* given a departure time */
    __u64 dropped_bytes;
    __u64 reserved[4];
};

/* The root at which we count. */
struct xco_root {
    __u32 interface; /* its index */
    __u32 namespace; /* its network namespace, as in /proc/self/ns/net: others count alike */
    __u32 requeues; /* packets returned to it because the device was busy */
    __u32 again; /* of them, those that have yet to leave a second time */
};

enum xco_notice_kind { XCO_NOTICE_WANTED = 1, XCO_NOTICE_ENTERED = 2 };

/* A notice to the coordinator: a host wants a gate, or a queue is no longer empty. */
struct xco_notice {
    __u32 kind; /* enum xco_notice_kind */
    __u32 which; /* host, or queue */
};

/* Constants of the programs, set before they are loaded. */
struct xco_classify_terms {
    __u32 small_bytes; /* IP packets below it are small */
    __u32 large_bytes; /* this much within the window makes a destination large */
    __u32 crowd_bytes; /* more waiting newcomers than this: every one of them is large */
    __u64 window_ns;
    __u64 horizon_ns; /* packets that would depart later are dropped */
    __u32 paced; /* packets have departure times */
    __u32 vms; /* VMs are listed: queues belong to slots, and their bytes are counted */
    __u32 hosts;
    __u32 admission; /* connections may be refused: every packet's TCP flags count */
};

#endif
