// Requests to the kernel's traffic control: several netlink messages in one buffer.
#ifndef XCO_QDISC_MESSAGE_H
#define XCO_QDISC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/rtnetlink.h>

#define XCO_BATCH_BYTES 16384

// Messages in the order in which the kernel carries them out; each one's sequence number is its
// place, from 1. A message that does not fit makes the batch `full`, and a full batch is not sent.
struct xco_batch {
    size_t used;
    size_t message; // where the newest begins
    uint32_t count;
    bool full;
    _Alignas(8) uint8_t bytes[XCO_BATCH_BYTES];
};

// Empties the batch.
void xco_batch_clear(struct xco_batch *batch);

// Begins a message about a qdisc, class or filter (rtnetlink(7)).
void xco_batch_message(struct xco_batch *batch, uint16_t type, uint16_t flags,
                       const struct tcmsg *what);

// Adds an attribute to the newest message.
void xco_batch_attribute(struct xco_batch *batch, uint16_t kind, const void *value, size_t length);

// Begins an attribute that contains others; returns the argument for xco_batch_end_nest.
size_t xco_batch_nest(struct xco_batch *batch, uint16_t kind);
void xco_batch_end_nest(struct xco_batch *batch, size_t nest);

#endif
