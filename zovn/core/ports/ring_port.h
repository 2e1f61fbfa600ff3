/* A port to a guest: the device's side of its two split virtqueues.
 *
 * From the guest's transmit ring come frames, into its receive ring they go. A session
 * that sets them up refuses packed rings, and IN_ORDER, which forbids to complete in any order. */
#ifndef ZOVN_PORTS_RING_PORT_H
#define ZOVN_PORTS_RING_PORT_H

#include "ports/port.h"

#pragma GCC visibility push(default)

struct zovn_ring_settings {
    struct zovn_split_ring transmit;
    struct zovn_split_ring receive;
    bool mergeable;        /* receive buffers: VIRTIO_NET_F_MRG_RXBUF */
    bool version_1;        /* VIRTIO_F_VERSION_1; the header has 12 bytes with either, else 10 */
    uint32_t sends, takes; /* offloads */
    /* Called at most once for each ring when it is published, if the guest wants to know. */
    void (*notify)(void *context, bool receive);
    void *context;
    /* Called when the port is freed: how far its rings have got. This and `notify` may be NULL. */
    void (*closed)(void *context, const struct zovn_split_ring *transmit,
                   const struct zovn_split_ring *receive);
};

/* Return a port with these rings, whose memory must outlive it; or NULL. */
struct zovn_port *zovn_ring_port_new(const struct zovn_ring_settings *settings);

/* Ask the guest to notify of frames and of receive buffers, or not to. Before a sleep: ask, step once
 * more, and sleep if that moved nothing. */
void zovn_ring_port_ask(struct zovn_port *port, bool notify);

/* Return how many receive buffers were malformed; they went back without a frame. */
uint64_t zovn_ring_port_bad_buffers(const struct zovn_port *port);

#pragma GCC visibility pop
#endif
