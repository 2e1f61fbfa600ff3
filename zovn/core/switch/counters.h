/* What is counted for each port.
 *
 * At any time between calls, for the frames that come from a port:
 *
 *     in + copies = delivered + held + parked + the sum of drops
 *
 * A frame that is flooded to n destinations is one of `in` and n - 1 `copies`; each of the n is
 * delivered, parked or dropped by itself. A frame is `held` while it lies in its sender's ring. A frame
 * that the switch cuts into segments is one of `in` and `delivered`; `out` counts its segments. */
#ifndef ZOVN_SWITCH_COUNTERS_H
#define ZOVN_SWITCH_COUNTERS_H

#include <stdint.h>

enum zovn_reason {
    ZOVN_CONGESTION,     /* beyond the limit of a lossy class; never of a lossless one */
    ZOVN_STALLED, /* its destination took nothing, or a flood behind it waited, for `stall_ns` */
    ZOVN_MALFORMED, /* no frame, or one that changed while it was read */
    ZOVN_TOO_LONG, /* for the switch, or for any buffer of the destination */
    ZOVN_NO_DESTINATION, /* none but its own port, or none in its VLAN */
    ZOVN_RESERVED, /* to an address that bridges do not forward (802.1Q, 8.6.3) */
    ZOVN_VLAN, /* a tag that its port does not accept */
    ZOVN_OFFLOAD, /* unfinished, and neither its destination nor the switch finishes it */
    ZOVN_STOPPED, /* its port or its destination broke the rules of its ring */
    ZOVN_REMOVED, /* its port or its destination was removed */
    ZOVN_NO_LOCATION, /* to a station of which no map says at which host it is */
    ZOVN_REFUSED, /* its destination is a lossy port (TAP), and did not take it */
    ZOVN_REASONS,
};

struct zovn_counters {
    /* of frames from this port */
    uint64_t in;
    uint64_t in_bytes;
    uint64_t copies;
    uint64_t delivered;
    uint64_t held;
    uint64_t parked;
    uint64_t drops[ZOVN_REASONS];
    /* of frames to this port */
    uint64_t out;
    uint64_t out_bytes;
    uint64_t marked;
    uint64_t finished; /* the switch made their checksums, or cut them out of longer ones */
    uint64_t waiting; /* frames, now */
    uint64_t waiting_bytes; /* the same in bytes */
    uint64_t blocked_ns; /* frames waited, and none was taken; where classes are closed
                               by themselves, the sum over them */
    uint64_t longest_ns; /* of such times */
    uint64_t stalls;
    /* of its addresses */
    uint64_t moves; /* to this port */
    uint64_t not_learned; /* frames with an address beyond the port's limit, or a static one */
    /* of the line behind it; see ports/port.h */
    uint64_t beyond;
    uint64_t unsound;
    uint64_t overruns;
    uint64_t pauses_sent;
    uint64_t pauses;
    uint64_t paused_ns;
};

#endif
