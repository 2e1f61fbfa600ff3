// The classifier's BPF programs: loads, attaches, fills and reads them (qdisc/classify.bpf.c).
//
// Once it is attached, it reads and writes memory shared with the kernel; only addresses take a
// system call each. No function here waits for the kernel's lock of network settings.
#ifndef XCO_QDISC_CLASSIFIER_H
#define XCO_QDISC_CLASSIFIER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "qdisc/maps.h"

struct bpf_link;
struct bpf_object;
struct ring_buffer;

struct xco_classifier {
    struct bpf_object *object;
    struct bpf_link *entered, *left;
    struct ring_buffer *notices;
    int classify, share; // programs, for the filters that call them
    int places, root, vms; // maps
    struct xco_target *targets;
    struct xco_passage *passages;
    struct xco_pace *paces;
    uint32_t *kinds;
    uint64_t *slots;
    size_t target_bytes, passage_bytes, pace_bytes, kind_bytes, slot_bytes;
    bool paced; // packets have departure times
    uint64_t horizon_ns;
    unsigned hosts;
};

// Takes a notice; `context` as given to xco_classifier_open.
typedef void (*xco_notice_taker)(void *context, const struct xco_notice *notice);

// Loads the programs of an object file and attaches those that count; returns 0, or a negative
// errno: -EPERM (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN are needed), -ENOENT (there is no such
// file), -EOPNOTSUPP (this kernel cannot run them; `problem` has libbpf's reason).
int xco_classifier_open(struct xco_classifier *classifier, const char *file,
                        const struct xco_classify_terms *terms, xco_notice_taker taker,
                        void *context);
void xco_classifier_close(struct xco_classifier *classifier);

// The last complaint of libbpf.
const char *xco_classifier_problem(void);

// A root exists, or will soon, on the interface of this index: counts only there.
int xco_classifier_begin(struct xco_classifier *classifier, unsigned interface);

// Sets the host of an address, or that it is at none; 0 or a negative errno (-E2BIG: full).
int xco_classifier_place(struct xco_classifier *classifier, const struct xco_place *place,
                         uint16_t host);
int xco_classifier_displace(struct xco_classifier *classifier, const struct xco_place *place);

// Gives a host a gate, or takes it away: its packets are newcomers again.
void xco_classifier_give(struct xco_classifier *classifier, uint16_t host, unsigned gate);
void xco_classifier_take(struct xco_classifier *classifier, uint16_t host);

// Refuses new TCP connections to a host until then; 0: admits them. Counts those refused.
void xco_classifier_refuse(struct xco_classifier *classifier, uint16_t host, int64_t until_ns);
uint64_t xco_classifier_refused(const struct xco_classifier *classifier, uint16_t host);

// With departure times: sets a queue's rate. Waiting packets keep their times, and later ones
// depart within the horizon.
void xco_classifier_pace(struct xco_classifier *classifier, unsigned queue, uint64_t rate_bps,
                         int64_t now_ns);
uint64_t xco_classifier_dropped(const struct xco_classifier *classifier); // bytes, of all queues

// Reads what a queue has taken and passed on; resets both; requests a notice of the next entry. A
// queue with departure times starts behind the newcomers, where its first packets were.
struct xco_passage xco_classifier_passage(const struct xco_classifier *classifier, unsigned queue,
                                          int64_t now_ns);
void xco_classifier_reset(struct xco_classifier *classifier, unsigned queue);
void xco_classifier_arm(struct xco_classifier *classifier, unsigned queue);

// Gives the packets from an interface a slot behind each gate, or the slots of unlisted VMs; 0 or a
// negative errno.
int xco_classifier_list(struct xco_classifier *classifier, unsigned interface, unsigned slot);
int xco_classifier_unlist(struct xco_classifier *classifier, unsigned interface);
// Returns the bytes that entered a gate from each slot since its last reset.
const uint64_t *xco_classifier_slots(const struct xco_classifier *classifier, unsigned gate);

// Returns the descriptor that becomes readable with a notice; takes all notices.
int xco_classifier_descriptor(const struct xco_classifier *classifier);
void xco_classifier_notices(struct xco_classifier *classifier);

#endif
