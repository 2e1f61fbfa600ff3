// Packets in flight or queued, in a pool; a packet is named by its index.
#ifndef PACKETS_H
#define PACKETS_H

#include <stddef.h>
#include <stdint.h>

#define NO_PACKET UINT32_MAX
#define NO_LINK UINT32_MAX
#define NO_ENDPOINT UINT32_MAX

struct packet {
    int64_t sent_ps, echo_ps; // TCP's timestamp, and the one it returns
    uint64_t early;           // what has arrived above `ack`: bit i for the segment ack + i
    uint32_t next;            // in its queue
    uint32_t endpoint;        // receiver; NO_ENDPOINT for a datagram of the background
    uint32_t source;          // VM that sent it
    uint32_t sequence, ack;   // in segments
    uint32_t hash;            // of its flow: chooses the path
    uint32_t ingress;         // link whose receiver holds it, or NO_LINK
    uint16_t length;          // of the IP packet
    uint16_t to_host;
    uint8_t to_vm, class, has_data;
    uint8_t queue; // of the link that it was last queued at
    uint8_t charged; // queue of the ingress link that it is charged to
};

struct packets {
    struct packet *all;
    uint32_t room, free, used;
};

// A zeroed packet. The pool may move: take the address again after each call.
uint32_t packets_take(struct packets *packets);

void packets_free(struct packets *packets, uint32_t index);

#endif
