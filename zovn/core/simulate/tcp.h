// TCP between VMs: endpoints that exchange messages of a fixed size in each direction.
#ifndef TCP_H
#define TCP_H

#include "config.h"
#include "network.h"
#include "topology.h"

#define TCP_HEADERS 52 // IP and TCP, with timestamps

struct endpoint {
    uint16_t host;
    uint8_t vm, class;
    bool recovering, sampled, unacknowledged;
    uint32_t hash;
    // What it sends: messages of `segments`, the last of which has `tail` bytes of payload.
    uint32_t segments, tail;
    uint32_t una, next, limit, recover; // sequence numbers count segments
    uint64_t sacked, lost, again;       // bit i for the segment una + i; again: retransmitted
    uint32_t duplicates, backoff;
    double window, threshold;
    int64_t srtt_ps, rttvar_ps, deadline_ps, timer_ps;
    // Cubic and Vegas.
    double most;         // window before the last loss
    int64_t epoch_ps;    // time of the last loss
    int64_t base_ps;     // least round trip
    int64_t round_ps;    // least round trip of this round
    uint32_t round_last; // its last segment
    // What it receives.
    uint32_t expected, delivered; // segments in order, messages
    uint64_t early;               // bit i for the segment expected + i
    int64_t recent_ps;            // the timestamp to return
    int64_t ack_deadline_ps, ack_timer_ps, heard_ps;
};

struct tcp_counts {
    uint64_t sent, received, retransmitted, timeouts, recoveries, reordered;
};

struct tcp {
    const struct config *config;
    const struct topology *topology;
    struct network *network;
    struct endpoint *endpoints; // the two of a connection are 2n and 2n + 1
    struct tcp_counts counts;
    void (*on_message)(void *application, uint32_t endpoint);
    void *application;
};

static inline uint32_t tcp_payload(const struct config *config) {
    return (uint32_t)config->mtu - TCP_HEADERS;
}

static inline int64_t tcp_now(const struct tcp *tcp) {
    return tcp->network->events.now_ps;
}

#endif
