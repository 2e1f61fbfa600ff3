/* Segments of a frame that its sender left whole: TCP's, and UDP datagrams. */
#ifndef ZOVN_SWITCH_SEGMENT_H
#define ZOVN_SWITCH_SEGMENT_H

#include "ports/port.h"

enum { ZOVN_MOST_HEADERS = 256 }; /* bytes of a frame's headers, if the switch finishes it */

/* One of a frame's segments. */
struct zovn_piece {
    uint32_t network_at; /* where headers begin */
    uint32_t transport_at;
    uint32_t payload_at;
    bool udp;
    uint32_t number; /* of those before it */
    uint32_t from;   /* its part of the payload */
    uint32_t bytes;
    bool last;
};

/* Return where the payload begins in a frame that is to be segmented; 0 if its headers are not those
 * of a frame that can be. */
uint16_t zovn_payload_at(const struct zovn_frame *frame, const struct zovn_offload *offload,
                         uint32_t network_at);

/* Make a copy of the frame's headers those of a segment, but for the sum of TCP or UDP, in which
 * only the pseudo header changes. `length` is that of the frame. */
void zovn_segment_headers(uint8_t *head, const struct zovn_piece *piece, uint32_t length);

#endif
