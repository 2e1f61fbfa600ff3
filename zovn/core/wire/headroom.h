/* The buffer of a class that PFC protects: what may still come after a pause was decided
 * (IEEE 802.1Qbb, annex O).
 *
 * Until the pause is obeyed these come in: what is on the cable both ways, a largest frame that
 * delays the pause and one that the peer has begun, the pause itself, what comes while either side
 * does not look, and what the peer has given to its kernel and interface and cannot call back. */
#ifndef ZOVN_WIRE_HEADROOM_H
#define ZOVN_WIRE_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct zovn_headroom {
    uint64_t rate_bps;    /* of the line */
    uint64_t delay_ns;    /* of the cable, one way */
    uint64_t response_ns; /* both sides together, until a pause is sent and obeyed */
    uint64_t most_bytes;  /* of a frame on the line */
    uint64_t ring_bytes;  /* that wait there at the peer, which a pause does not stop */
};

/* Return the bytes that may come in after a pause was decided. */
uint64_t zovn_headroom_bytes(const struct zovn_headroom *headroom);

/* Return the least buffer of a class: the headroom, and two largest frames below it. */
uint64_t zovn_headroom_least(const struct zovn_headroom *headroom);

/* Find the thresholds of a buffer; return false if it is below the least. */
bool zovn_headroom_divide(const struct zovn_headroom *headroom, uint64_t buffer_bytes,
                          uint64_t *xoff_bytes, uint64_t *xon_bytes);

#pragma GCC visibility pop
#endif
