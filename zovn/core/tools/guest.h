/* A guest of tests: ports by DPDK's virtio-user, and frames whose numbers prove their delivery. */
#ifndef ZOVN_TOOLS_GUEST_H
#define ZOVN_TOOLS_GUEST_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mempool;
struct rte_mbuf;

enum { GUEST_PORTS = 8, GUEST_STATIONS = 64, GUEST_BURST = 32 };

/* What a station received of another one's frames. */
struct tally {
    uint64_t received, repeated, overtaken, gaps, next;
};

struct port {
    uint16_t device;
    uint16_t station; /* its number, which its address has; ports of all guests differ */
    uint16_t to;      /* where it sends */
    uint64_t most;    /* frames that it sends */
    uint64_t sent;
    uint64_t rate;    /* frames that it takes in a millisecond; 0: all */
    uint64_t taken;
    struct tally from[GUEST_STATIONS];
    struct rte_mbuf *held[GUEST_BURST]; /* made, but not taken by the ring yet */
    uint16_t held_count;
};

/* Fill in a frame of a port; its number is that of those made before. */
void guest_write(const struct port *port, uint64_t number, uint8_t *frame, uint16_t length);

/* Count a received frame; return whether it is one of these. */
bool guest_count(struct port *port, const uint8_t *frame, uint32_t length);

#endif
