// The kernel's answers to a batch of requests.
#ifndef XCO_QDISC_ANSWER_H
#define XCO_QDISC_ANSWER_H

#include <stdint.h>

#include "qdisc/message.h"

// The kernel's data of one queue.
struct xco_reading {
    uint32_t handle;
    char kind[8]; // of the root: "htb" of a tree; "mq" or "fq" with departure times
    uint64_t sent_bytes;
    uint32_t backlog_bytes;
    uint32_t waiting; // packets
};

struct xco_answers {
    struct xco_reading *readings; // where answers go, or NULL
    int room;
    int count;
    uint32_t place; // of the first refused request, 0: none
};

// Sends a batch and takes all answers, which have arrived when the send returns (the kernel works
// in the sender's context). 0, or the negative errno of the first refusal.
int xco_answers_of(int netlink, const struct xco_batch *batch, struct xco_answers *answers);

// Returns the attribute of this kind among others, or NULL.
const struct rtattr *xco_attribute(const void *attributes, size_t length, uint16_t kind);

#endif
