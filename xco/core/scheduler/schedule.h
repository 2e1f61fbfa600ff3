/* The scheduler of timeslices: which host may send to which, at what rate; events in, grants out.
 *
 * The interface is that of `xco/scheduler/reference.py`, which has Algorithm 1 in readable form.
 * This one does not walk whole contention groups at an event
 * (docs/decisions/0025-compiled-scheduler.md):
 *
 *  - each directed link of the spanning tree keeps the capacity that is left on it;
 *  - a backlogged V2V flow (host, destination) is in a row of its host and in one of its
 *    destination; if a link between switches blocks it, it is also parked there;
 *  - when a timeslice ends, only the rows of its two hosts and the flows parked at freed links
 *    are tried, until the links are full.
 *
 * Feasibility (Eq. 1): the rates granted over a link never exceed its capacity.
 * Maximality: after each call no waiting flow of an idle host fits into the unreserved capacity.
 *
 * Bound on starvation. A flow that has waited for `patience_ns` gets, in the order of waiting, its
 * links and its host reserved (one reservation per directed link). From then on other flows are
 * granted only what leaves its rate free. All present grants end within one timeslice T, so a
 * reserved flow is served within T. The flow that is next in order waits at most T for the
 * reservations that block it. With n flows backlogged when it began to wait, a flow is therefore
 * served within `patience_ns + (n + 1) * T`, under both policies, as long as the caller calls
 * `xco_schedule_expired` or `_gave_up` within T of each grant. With patience_ns = XCO_FOREVER there
 * is no bound.
 *
 * No globals. No call allocates but `_new`, and those that add flows when the flow table or a row
 * must grow; they do so before they change anything. One thread at a time. Time is a parameter,
 * in nanoseconds of any monotonic clock.
 */
#ifndef XCO_SCHEDULER_SCHEDULE_H
#define XCO_SCHEDULER_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define XCO_NONE UINT32_MAX    /* no destination: the host may not send */
#define XCO_FOREVER UINT64_MAX /* threshold: never preempt; patience: never reserve */
#define XCO_MOST_HOSTS 1000000u

enum xco_policy {
    XCO_PUBLISHED = 0, /* longest wait first; preemption beyond the threshold */
    XCO_FAIR = 1,      /* weighted max-min: least service by weight first */
};

/* A physical link of the spanning tree between nodes a and b. Nodes 0 .. hosts-1 are the hosts,
 * hosts .. hosts+switches-1 the switches. Its directed links are 2*i (a to b) and 2*i+1 (b to
 * a), where i is its index in `links`. */
struct xco_tree_link {
    uint32_t a;
    uint32_t b;
    uint64_t capacity_bps; /* of each direction, > 0 and below 2^62 */
};

struct xco_schedule_options {
    uint32_t hosts;    /* at least 1 */
    uint32_t switches; /* hosts + switches - 1 links make a tree of them, each host a leaf */
    const struct xco_tree_link *links;
    uint32_t policy;       /* enum xco_policy */
    uint32_t limit_rates;  /* 1: a host faster than its path is granted the path's rate */
    uint64_t threshold_ns; /* XCO_PUBLISHED preempts no younger grant; XCO_FOREVER: none */
    uint64_t patience_ns;  /* how long a flow may wait before its links are reserved for it */
    uint64_t memory_ns;    /* XCO_FAIR: service this long ago counts half; > 0 */
    double least_share;    /* in (0, 1]; with limit_rates, grant what a link has left if it is at
                              least this share of the flow's full rate; 1: full rate or nothing */
};

/* What a host may do now: send to one destination at a rate, or (XCO_NONE, 0) nothing. */
struct xco_grant {
    uint32_t host;
    uint32_t destination;
    uint64_t rate_bps;
};

struct xco_schedule;

/* Make a schedule; copies what it needs of the options. NULL with errno EINVAL (invalid options;
 * *problem then says what is wrong, if not NULL) or ENOMEM. */
struct xco_schedule *xco_schedule_new(const struct xco_schedule_options *options,
                                      const char **problem);
void xco_schedule_free(struct xco_schedule *schedule);

/* The four events. Each writes the changed grants, in order, into `grants`, which must have room
 * for one per host, and returns their number; a host appears at most once. A grant that restarts
 * is included even if it is the same as before: a new timeslice starts. Negative: -EINVAL (no
 * such host or destination, or the host itself), -ENOMEM; nothing changed. */

/* Event 3: the whole backlog group of a host, new or changed; 0 destinations: none. A current
 * destination that is no longer in the group keeps its grant until it ends. */
int xco_schedule_backlogged(struct xco_schedule *schedule, uint64_t now_ns, uint32_t host,
                            const uint32_t *destinations, size_t count, struct xco_grant *grants);
/* The same for one more destination of a host: the addition, without the rest of the group. */
int xco_schedule_add(struct xco_schedule *schedule, uint64_t now_ns, uint32_t host,
                     uint32_t destination, struct xco_grant *grants);
/* Event 1: the timeslice of a host has ended. No effect if it has none. */
int xco_schedule_expired(struct xco_schedule *schedule, uint64_t now_ns, uint32_t host,
                         struct xco_grant *grants);
/* Event 2, work conservation: the host has nothing left for its destination. */
int xco_schedule_gave_up(struct xco_schedule *schedule, uint64_t now_ns, uint32_t host,
                         struct xco_grant *grants);
/* The host has left: ends its grant, drops its backlog, forgets its history. */
int xco_schedule_leave(struct xco_schedule *schedule, uint64_t now_ns, uint32_t host,
                       struct xco_grant *grants);

/* The weight of a flow under XCO_FAIR, default 1; finite and > 0. Counts from its next wait on,
 * divided by the number of its host's backlogged flows. A flow with a set weight is kept until
 * its host leaves. 0, -EINVAL or -ENOMEM. */
int xco_schedule_weigh(struct xco_schedule *schedule, uint32_t host, uint32_t destination,
                       double weight);
/* The same for all flows of a host added from now on; they are forgotten like others, the host's
 * weight never. 0 or -EINVAL. */
int xco_schedule_weigh_host(struct xco_schedule *schedule, uint32_t host, double weight);

/* The present state. */
struct xco_grant xco_schedule_current(const struct xco_schedule *schedule, uint32_t host);
uint64_t xco_schedule_used_bps(const struct xco_schedule *schedule, uint32_t directed_link);
/* Capacity that a directed link reserves for a flow. */
uint64_t xco_schedule_reserved_bps(const struct xco_schedule *schedule, uint32_t directed_link);
/* The destination for which a host, idle or busy, is reserved; XCO_NONE: none. */
uint32_t xco_schedule_reserved_for(const struct xco_schedule *schedule, uint32_t host);
/* The rate at which a host would send to a destination if all links were free; 0: never. */
uint64_t xco_schedule_full_rate_bps(const struct xco_schedule *schedule, uint32_t host,
                                    uint32_t destination);
uint32_t xco_schedule_backlog(const struct xco_schedule *schedule, uint32_t host); /* flows */
size_t xco_schedule_bytes(const struct xco_schedule *schedule);                     /* memory */

/* Check all invariants, however long it takes; NULL, or the one that does not hold. For tests. */
const char *xco_schedule_check(const struct xco_schedule *schedule);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
