/* What comes in after a pause was decided, and the thresholds that leave room for it. */
#include "wire/headroom.h"

enum { PAUSE_BYTES = 84 }; /* with preamble, checksum and gap */

#define SECOND_NS UINT64_C(1000000000)

/* Rounded up. */
static uint64_t bytes_in(uint64_t ns, uint64_t rate_bps) {
    uint64_t bits = ns / SECOND_NS * rate_bps + (ns % SECOND_NS * rate_bps) / SECOND_NS;
    return bits / 8 + 1;
}

uint64_t zovn_headroom_bytes(const struct zovn_headroom *headroom) {
    uint64_t away_ns = 2 * headroom->delay_ns + headroom->response_ns;
    return bytes_in(away_ns, headroom->rate_bps) + 2 * headroom->most_bytes + PAUSE_BYTES +
           headroom->ring_bytes;
}

uint64_t zovn_headroom_least(const struct zovn_headroom *headroom) {
    return zovn_headroom_bytes(headroom) + 2 * headroom->most_bytes;
}

/* The peer is to send again before all is gone: XON is half of XOFF. */
bool zovn_headroom_divide(const struct zovn_headroom *headroom, uint64_t buffer_bytes,
                          uint64_t *xoff_bytes, uint64_t *xon_bytes) {
    if (buffer_bytes < zovn_headroom_least(headroom))
        return false;
    *xoff_bytes = buffer_bytes - zovn_headroom_bytes(headroom);
    *xon_bytes = *xoff_bytes / 2;
    return true;
}
