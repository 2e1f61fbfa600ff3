// Links with queues, transmission, tail drop, and per-queue flow control to the sender.
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "events.h"
#include "packets.h"

#define QUEUES 16
#define CLASSES 2
#define ETHERNET 18 // header and checksum
#define GAP 20      // preamble and gap between frames, on wires

// What a link is, from sender to receiver. Places of drops have these names too.
enum place {
    VM_TO_HOST,
    HOST_TO_VM,
    HOST_TO_CHASSIS,
    CHASSIS_TO_HOST,
    CHASSIS_TO_AGGREGATION,
    AGGREGATION_TO_CHASSIS,
    AGGREGATION_TO_CORE,
    CORE_TO_AGGREGATION,
    PLACES
};

// What the receiver of a link does with a packet for which there is no room.
enum arrival {
    ARRIVAL_TAIL,  // drop it if the queue ahead is full
    ARRIVAL_FULL,  // drop it if its own buffer is full; never ahead
    ARRIVAL_PAUSE, // pause the sender in time
};

struct queue {
    uint32_t head, tail;
    int64_t cost, deficit;
};

struct link {
    // Sender.
    struct queue queues[QUEUES];
    uint32_t queue_count, turn, waiting, paused; // the last two: a bit for each queue
    bool awake;                                  // an event will send the next packet
    int64_t free_ps, delay_ps, ps_per_byte;
    int64_t frame; // bytes on this link beyond the IP packet
    int64_t room;  // cost that each queue may have under tail drop
    bool room_in_packets;
    enum place place;
    uint32_t from, to; // indices of the nodes that `place` names
    // Receiver.
    enum arrival arrival;
    bool capacity_in_packets;
    int64_t capacity, pause_above, resume_below, pause_delay_ps;
    int64_t held[QUEUES];
    uint32_t stopped; // queues that have been told to pause
    int64_t most_held, bytes;
};

struct drops {
    uint64_t tail[PLACES][CLASSES], full[CLASSES], overrun;
};

struct network {
    struct events events;
    struct packets packets;
    struct link *links;
    uint32_t link_count;
    int64_t overlay; // bytes of the overlay's headers
    struct drops drops;
    uint64_t pauses[PLACES];
    // Tell the background that a VM has sent one of its datagrams.
    void (*datagram_sent)(void *background, uint32_t vm);
    void *background;
};

// Queue a packet that a VM made.
void network_originate(struct network *network, uint32_t link, uint32_t queue, uint32_t packet);

// Move a packet that came over a link to the next one, or drop it.
void network_forward(struct network *network, uint32_t from, uint32_t to, uint32_t queue,
                     uint32_t packet);

// Handle EVENT_WAKE, EVENT_PAUSE and EVENT_RESUME.
void network_wake(struct network *network, uint32_t link);
void network_pause(struct network *network, uint32_t link, uint32_t queue);
void network_resume(struct network *network, uint32_t link, uint32_t queue);

#endif
