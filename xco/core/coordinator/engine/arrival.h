// When a datagram arrived, by the kernel's stamp: what the loop was late by is no part of its way.
#ifndef XCO_COORDINATOR_ENGINE_ARRIVAL_H
#define XCO_COORDINATOR_ENGINE_ARRIVAL_H

#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

// Reads a clock in ns.
typedef int64_t xco_clock_reader(clockid_t clock);

// Returns when the kernel received a datagram, ns of CLOCK_MONOTONIC, from its stamp
// (SO_TIMESTAMPNS); never before it did, so that no way is taken for shorter than it was. Without a
// stamp, or after a step of the wall clock, it is now.
int64_t xco_arrival_ns(struct msghdr *message, xco_clock_reader *read);

#endif
