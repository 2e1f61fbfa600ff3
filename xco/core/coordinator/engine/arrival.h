// Arrival of a datagram by the kernel's timestamp: the loop's delay is not part of its way.
#ifndef XCO_COORDINATOR_ENGINE_ARRIVAL_H
#define XCO_COORDINATOR_ENGINE_ARRIVAL_H

#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

// Reads a clock in ns.
typedef int64_t xco_clock_reader(clockid_t clock);

// Returns when the kernel received a datagram, ns of CLOCK_MONOTONIC, from its timestamp
// (SO_TIMESTAMPNS). Never returns an earlier time, so that no way is taken for shorter than it was.
// Without a timestamp, or after a step of the wall clock, it is now.
int64_t xco_arrival_ns(struct msghdr *message, xco_clock_reader *read);

#endif
