// Sees outgoing packets without a queue of their own, so that large flows get one.
//
// A packet socket takes the head of each; a classic BPF filter skips small packets and flows with a
// queue (linux document networking/filter). The rest passes the newcomers' limit, so it is small;
// the loop takes it when it has time, not packet by packet.
#ifndef XCO_QDISC_WATCH_H
#define XCO_QDISC_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qdisc/layout.h"

struct xco_sight {
    struct xco_pair pair;
    uint32_t bytes; // of the IP packet
};

// Opens the socket on an interface for IP packets of at least `small_bytes`; returns the
// descriptor, or a negative errno.
int xco_watch_open(int interface, uint32_t small_bytes);

// Skips the flows that have a queue; 0 or a negative errno.
int xco_watch_except(int watch, uint32_t small_bytes, const struct xco_pair *pairs, size_t count);

// Takes at most `room` sights without waiting; returns their number, or a negative errno
// (-ENETDOWN: the interface is gone or down).
int xco_watch_take(int watch, struct xco_sight *sights, int room);

// Reads the head of an IP packet; false if it is not one.
bool xco_sight_of(const uint8_t *packet, size_t length, struct xco_sight *sight);

#endif
