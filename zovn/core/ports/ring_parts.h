/* The structure of a port to a guest, for the files that implement it. */
#ifndef ZOVN_PORTS_RING_PARTS_H
#define ZOVN_PORTS_RING_PARTS_H

#include "ports/port.h"

struct zovn_ring_port {
    struct zovn_port port;
    struct zovn_split_ring transmit;
    struct zovn_split_ring receive;
    uint32_t header_bytes;
    bool mergeable;
    void (*notify)(void *context, bool receive);
    void (*closed)(void *context, const struct zovn_split_ring *transmit,
                   const struct zovn_split_ring *receive);
    void *context;
    uint64_t bad_buffers;
    uint16_t *resumed; /* heads that an earlier device had taken */
    uint32_t resumed_at, resumed_end;
};

/* Copy a frame into the guest's receive buffers. */
enum zovn_put_result zovn_ring_put(struct zovn_port *port, struct zovn_frame *frame);

#endif
