/* A port to a guest: the device's side of its split virtqueues, which come in pairs.
 *
 * From the guest's transmit rings come frames, into its receive rings they go: those of a flow into
 * the same one always. A frame whose ring has no room holds up all others to the guest. A session that sets
 * the rings up refuses packed ones, and IN_ORDER, which forbids to complete in any order. */
#ifndef ZOVN_PORTS_RING_PORT_H
#define ZOVN_PORTS_RING_PORT_H

#include "ports/port.h"
#include "ports/ring_pair.h"

#pragma GCC visibility push(default)

struct zovn_ring_settings {
    struct zovn_split_ring transmit;
    struct zovn_split_ring receive;
    bool mergeable;        /* receive buffers: VIRTIO_NET_F_MRG_RXBUF */
    bool version_1;        /* VIRTIO_F_VERSION_1; the header has 12 bytes with either, else 10 */
    uint32_t sends, takes; /* offloads */
    /* Called at most once for each ring when it is published, if the guest wants to know. */
    void (*notify)(void *context, uint32_t pair, bool receive);
    void *context;
    /* Called for each pair when the port is freed: how far its rings have got. This and `notify` may
     * be NULL. */
    void (*closed)(void *context, uint32_t pair, const struct zovn_ring_pair *rings);
    uint32_t
        heads; /* room for those of all transmit rings, also of pairs that are added later; 0: of
                       the first pair */
};

/* Return a port with these rings, whose memory must outlive it; or NULL. */
struct zovn_port *zovn_ring_port_new(const struct zovn_ring_settings *settings);

/* Add a pair, whose memory must outlive the port; return false if there is no room for it. */
bool zovn_ring_port_add(struct zovn_port *port, const struct zovn_ring_pair *rings);

/* Ask the guest to notify of frames and of receive buffers, or not to. Before a sleep: ask, step once
 * more, and sleep if that moved nothing. */
void zovn_ring_port_ask(struct zovn_port *port, bool notify);

/* Return how many receive buffers were malformed; they went back without a frame. */
uint64_t zovn_ring_port_bad_buffers(const struct zovn_port *port);

#pragma GCC visibility pop
#endif
