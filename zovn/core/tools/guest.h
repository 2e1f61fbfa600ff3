/* A guest of tests: ports by DPDK's virtio-user, and frames whose numbers prove their delivery. */
#ifndef ZOVN_TOOLS_GUEST_H
#define ZOVN_TOOLS_GUEST_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mempool;
struct rte_mbuf;

enum { GUEST_PORTS = 8, GUEST_QUEUES = 8, GUEST_STATIONS = 64, GUEST_BURST = 32 };

/* What a station received of another one's frames. */
struct tally {
    uint64_t received, repeated, overtaken, gaps, next;
    uint64_t moved; /* times that they came by another queue than before */
    uint16_t queue;
};

/* What is sent by one queue. */
struct sending {
    uint64_t sent;
    struct rte_mbuf *held[GUEST_BURST]; /* made, but not taken by the ring yet */
    uint16_t held_count;
};

struct port {
    uint16_t device;
    uint16_t
        station; /* of its first queue: its number, which its address has. Each queue has one */
    uint16_t to; /* where its first queue sends; each other one sends to the station after it */
    uint64_t most; /* frames that each queue sends */
    uint64_t rate; /* frames that it takes in a millisecond; 0: all */
    uint64_t taken;
    struct tally from[GUEST_STATIONS];
    uint16_t queues;
    struct sending sending[GUEST_QUEUES];
};

/* Fill in a frame between two stations; its number is that of those made before. */
void guest_write(uint16_t from, uint16_t to, uint64_t number, uint8_t *frame, uint16_t length);

/* Count a frame that a queue received; return whether it is one of these. */
bool guest_count(struct port *port, uint16_t queue, const uint8_t *frame, uint32_t length);

/* Print what all ports sent and received. */
void guest_print(const struct port *ports, uint16_t count);

#endif
