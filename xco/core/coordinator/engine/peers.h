// What a host knows of the other hosts while it lives without a controller (HyGenICC). Pure.
//
// Each host tells the others by MARKS what arrived from them, and what they may send to it
// (docs/decisions/0077-rates-between-hosts.md). engine/offers.h has the receiver's side,
// engine/allowances.h the sender's.
#ifndef XCO_COORDINATOR_ENGINE_PEERS_H
#define XCO_COORDINATOR_ENGINE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/budget.h"
#include "common/message.h"
#include "coordinator/engine/by_marks.h"
#include "coordinator/engine/shares.h"

#define XCO_PEER_PERIOD_NS 10000000  // between looks at the counters, and between messages
#define XCO_PEER_ACTIVE_NS 500000000 // two hosts write to each other for this long after traffic

// What arrived from one source since the start.
struct xco_arrived {
    uint64_t packets;
    uint64_t bytes;
    uint64_t marks; // of the packets
};

// What is known of another host.
struct xco_peer {
    // as a sender to this one
    struct xco_arrived seen; // at the last look
    uint64_t between_marks;  // of its packets, but for those that the own port explains
    uint64_t arriving_bps;   // smoothed
    uint64_t offer_bps;      // what it may send; 0: no offer
    int64_t arrived_ns;      // when traffic last arrived; 0: never
    // as a destination
    struct xco_arrivals told; // its last message
    int64_t heard_ns;         // when that came; 0: never
    uint64_t sequence;        // of that
    struct xco_arrived base;  // by its counters, where the current period began
    int64_t base_ns;
    struct xco_marked pair;
    uint64_t sent_bytes; // through the gate to it
    int64_t sent_ns;     // when something last left through that; 0: never
    uint64_t wants_bps;  // what could be sent to it; 0: nothing waits
    uint16_t weight;         // of the VMs here that send to it; 0: no VM is listed
    uint16_t guarantee_mbps; // what these VMs are promised to it
    int64_t wrote_ns;    // when it was last written to
};

struct xco_peers_config {
    uint16_t host;
    uint8_t digest[XCO_DIGEST_BYTES]; // of the hosts' names
    uint64_t line_bps;                // what the host can send
    uint64_t port_bps;                // what the port towards it carries
    bool published;                   // by the published law instead of the fair one
};

struct xco_peers_counts {
    uint64_t taken, late, differing, misdirected;
};

struct xco_peers {
    struct xco_peers_config config;
    size_t count;          // of hosts in the topology
    struct xco_peer *list; // by number
    struct xco_demand *demands; // working memory, one for each host
    struct xco_budget budget;
    uint64_t shared_bps;   // of the own port, among the hosts
    int64_t counted_ns;    // when the counters last had news, and the budget was computed
    struct xco_arrived all; // by then
    size_t next;           // whom to write to first
    struct xco_peers_counts counts;
};

// Allocates and begins; -1: no memory.
int xco_peers_begin(struct xco_peers *peers, const struct xco_peers_config *config, size_t count);

enum xco_peers_result {
    XCO_PEER_TAKEN,
    XCO_PEER_LATE,        // a duplicate, or overtaken by a newer one
    XCO_PEER_DIFFERS,     // its topology has other hosts
    XCO_PEER_MISDIRECTED, // it is to another host, or from none of the topology
};

// Takes an authentic MARKS, and counts the result.
enum xco_peers_result xco_peers_take(struct xco_peers *peers, int64_t now_ns,
                                     const struct xco_header *header,
                                     const struct xco_arrivals *told);

// Writes what to tell the next host that is due to be written to; false: none is.
bool xco_peers_write(struct xco_peers *peers, int64_t now_ns, struct xco_arrivals *arrivals);

// Whether a host's last message is recent enough to be obeyed.
bool xco_peers_fresh(const struct xco_peer *peer, int64_t now_ns, int64_t silence_ns);

#endif
