// Arrival of a datagram by the kernel's timestamp: the loop's delay is not part of its way.
#include "coordinator/engine/arrival.h"

#include <string.h>

#define LONGEST_WAIT_NS 100000000

int64_t xco_arrival_ns(struct msghdr *message, xco_clock_reader *read) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            int64_t wall_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
            // the wall clock first: time between the two readings lengthens the way
            int64_t ago_ns = read(CLOCK_REALTIME) - wall_ns;
            int64_t now_ns = read(CLOCK_MONOTONIC);
            return ago_ns >= 0 && ago_ns < LONGEST_WAIT_NS ? now_ns - ago_ns : now_ns;
        }
    }
    return read(CLOCK_MONOTONIC);
}
