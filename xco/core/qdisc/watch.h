// Sees the packets that leave without a queue of their own, so that large flows get one.
//
// A packet socket takes the head of each; a classic BPF filter leaves out what is small and what
// has its queue (linux document networking/filter). What is left passes the newcomers' limit, so
// it is few; it is taken when the loop has a moment, not packet by packet.
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

// Opens the socket on an interface, to see IP packets of at least `small_bytes`; the descriptor, or
// a negative errno.
int xco_watch_open(int interface, uint32_t small_bytes);

// Leaves out the flows that have a queue; 0 or a negative errno.
int xco_watch_except(int watch, uint32_t small_bytes, const struct xco_pair *pairs, size_t count);

// Takes at most `room` sights without waiting; returns how many, or a negative errno (-ENETDOWN:
// the interface is gone or down).
int xco_watch_take(int watch, struct xco_sight *sights, int room);

// Reads the head of an IP packet; false if it is none.
bool xco_sight_of(const uint8_t *packet, size_t length, struct xco_sight *sight);

#endif
