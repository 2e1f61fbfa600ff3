/* Features of virtio's network device (1.2, sections 5.1.3 and 6) and of the vhost-user protocol. */
#include "vhost/features.h"

#include <linux/vhost_types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#include "ports/port.h"

enum {
    PROTOCOL_FEATURES = 30,
    MQ = 0,
    LOG_SHMFD = 1,
    RARP = 2,
    REPLY_ACK = 3,
    INFLIGHT_SHMFD = 12,
    STATUS = 16
};

/* What a guest may leave to the device, and what the device may leave to the guest. */
static const struct {
    uint8_t sent, taken;
    uint32_t offload;
} PAIRS[] = {
    {VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM, ZOVN_CHECKSUM},
    {VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_GUEST_TSO4, ZOVN_TCP4},
    {VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_GUEST_TSO6, ZOVN_TCP6},
    {VIRTIO_NET_F_HOST_ECN, VIRTIO_NET_F_GUEST_ECN, ZOVN_ECN},
};
enum { PAIR_COUNT = sizeof PAIRS / sizeof PAIRS[0] };

static uint64_t bit(uint32_t number) {
    return UINT64_C(1) << number;
}

/* A guest that was migrated announces itself, if it can: else its front end asks for that (RARP). */
uint64_t zovn_vhost_features(const struct zovn_port_options *options) {
    uint64_t features = bit(VIRTIO_F_VERSION_1) | bit(VIRTIO_NET_F_MRG_RXBUF) |
                        bit(VIRTIO_RING_F_EVENT_IDX) | bit(VIRTIO_RING_F_INDIRECT_DESC) |
                        bit(PROTOCOL_FEATURES) | bit(VHOST_F_LOG_ALL) |
                        bit(VIRTIO_NET_F_GUEST_ANNOUNCE);
    for (uint32_t i = 0; options->offloads && i < PAIR_COUNT; i++)
        features |= bit(PAIRS[i].sent) | bit(PAIRS[i].taken);
    if (options->queues > 1)
        features |= bit(VIRTIO_NET_F_MQ);
    return features;
}

uint64_t zovn_vhost_protocol_features(const struct zovn_port_options *options) {
    return (options->queues > 1 ? bit(MQ) : 0) | bit(LOG_SHMFD) | bit(RARP) | bit(REPLY_ACK) |
           bit(INFLIGHT_SHMFD) | bit(STATUS);
}

/* Where it knows of records, it reads and writes them when a ring begins, at places that are written
 * there: behind their ends, if the front end says so. The switch itself goes on from them. */
uint64_t zovn_vhost_passed_on(uint64_t chosen) {
    return chosen & ~bit(INFLIGHT_SHMFD);
}

uint32_t zovn_vhost_sends(uint64_t features) {
    uint32_t offloads = 0;
    for (uint32_t i = 0; i < PAIR_COUNT; i++)
        offloads |= zovn_vhost_has(features, PAIRS[i].sent) ? PAIRS[i].offload : 0;
    return offloads;
}

uint32_t zovn_vhost_takes(uint64_t features) {
    uint32_t offloads = 0;
    for (uint32_t i = 0; i < PAIR_COUNT; i++)
        offloads |= zovn_vhost_has(features, PAIRS[i].taken) ? PAIRS[i].offload : 0;
    return offloads;
}
