// What a host knows of the other hosts while it lives without a controller (HyGenICC). Pure.
#include "coordinator/engine/peers.h"

#include <stdlib.h>
#include <string.h>

#include "common/steps.h"
#include "coordinator/engine/by_steps.h"

#define SHORTEST_NS 5000000     // shorter periods are taken together with the next
#define FORGOTTEN_NS 1000000000 // a way that was silent for this long is unknown again

int xco_peers_begin(struct xco_peers *peers, const struct xco_peers_config *config, size_t count) {
    *peers = (struct xco_peers){
        .config = *config,
        .count = count,
        .list = calloc(count, sizeof *peers->list),
        .demands = calloc(count, sizeof *peers->demands),
        .budget = xco_budget_begin((double)config->port_bps),
    };
    return peers->list == NULL || peers->demands == NULL ? -1 : 0;
}

static struct xco_arrived counters_of(const struct xco_arrivals *told) {
    return (struct xco_arrived){told->packets, told->bytes, told->marks};
}

static bool restarted(const struct xco_arrived *before, const struct xco_arrived *now) {
    return now->packets < before->packets || now->bytes < before->bytes ||
           now->marks < before->marks;
}

static void begin_period(struct xco_peer *peer, int64_t now_ns, const struct xco_arrived *now) {
    peer->base = *now;
    peer->base_ns = now_ns;
}

// Lets a period end in which so much arrived. As published, a pair that sends nothing begins again.
static void end_period(const struct xco_peers *peers, struct xco_peer *peer, int64_t now_ns,
                       double packets, double marks) {
    const double line_bps = (double)peers->config.line_bps;
    if (!peers->config.published) {
        xco_marked_follow(&peer->pair, packets, marks, line_bps);
    } else if (now_ns - peer->sent_ns >= XCO_STEP_INACTIVE_NS) {
        peer->pair = xco_marked_begin(line_bps);
    } else {
        peer->pair.rate_bps = xco_steps_follow(peer->pair.rate_bps, marks, line_bps);
    }
}

// Follows the marks of the way to a host, by what it counted since the current period began. Time
// is the own clock's: more messages make no more periods.
static void follow(struct xco_peers *peers, struct xco_peer *peer, int64_t now_ns,
                   const struct xco_arrived *now) {
    const double line_bps = (double)peers->config.line_bps;
    const bool forgotten = peer->heard_ns == 0 || now_ns - peer->heard_ns >= FORGOTTEN_NS;
    if (forgotten) {
        peer->pair = xco_marked_begin(line_bps);
    }
    if (forgotten || restarted(&peer->base, now)) {
        begin_period(peer, now_ns, now);
    } else if (now_ns - peer->base_ns >= SHORTEST_NS) {
        end_period(peers, peer, now_ns, (double)(now->packets - peer->base.packets),
                   (double)(now->marks - peer->base.marks));
        begin_period(peer, now_ns, now);
    }
}

static enum xco_peers_result judge(const struct xco_peers *peers, const struct xco_header *header,
                                   const struct xco_arrivals *told) {
    const struct xco_peers_config *config = &peers->config;
    if (told->to != config->host || header->host >= peers->count || header->host == config->host) {
        return XCO_PEER_MISDIRECTED;
    }
    if (memcmp(told->digest, config->digest, sizeof told->digest) != 0) {
        return XCO_PEER_DIFFERS;
    }
    return header->sequence > peers->list[header->host].sequence ? XCO_PEER_TAKEN : XCO_PEER_LATE;
}

enum xco_peers_result xco_peers_take(struct xco_peers *peers, int64_t now_ns,
                                     const struct xco_header *header,
                                     const struct xco_arrivals *told) {
    const enum xco_peers_result result = judge(peers, header, told);
    struct xco_peers_counts *counts = &peers->counts;
    uint64_t *const counted[] = {&counts->taken, &counts->late, &counts->differing,
                                 &counts->misdirected};
    ++*counted[result];
    if (result == XCO_PEER_TAKEN) {
        struct xco_peer *peer = &peers->list[header->host];
        const struct xco_arrived now = counters_of(told);
        follow(peers, peer, now_ns, &now);
        peer->told = *told;
        peer->heard_ns = now_ns;
        peer->sequence = header->sequence;
    }
    return result;
}

static bool is_due(const struct xco_peers *peers, size_t host, int64_t now_ns) {
    const struct xco_peer *peer = &peers->list[host];
    const bool arrives = peer->arrived_ns != 0 && now_ns - peer->arrived_ns < XCO_PEER_ACTIVE_NS;
    const bool leaves = peer->sent_ns != 0 && now_ns - peer->sent_ns < XCO_PEER_ACTIVE_NS;
    return host != peers->config.host && (arrives || leaves) &&
           now_ns - peer->wrote_ns >= XCO_PEER_PERIOD_NS;
}

static struct xco_arrivals tell(const struct xco_peers *peers, size_t host) {
    const struct xco_peer *peer = &peers->list[host];
    struct xco_arrivals arrivals = {
        .to = (uint16_t)host,
        .weight = peer->weight,
        .guarantee_mbps = peer->guarantee_mbps,
        .read_ns = (uint64_t)peers->counted_ns,
        .packets = peer->seen.packets,
        .bytes = peer->seen.bytes,
        .marks = peers->config.published ? peer->seen.marks : peer->between_marks,
        .offer_bps = peer->offer_bps,
        .wants_bps = peer->wants_bps,
    };
    memcpy(arrivals.digest, peers->config.digest, sizeof arrivals.digest);
    return arrivals;
}

bool xco_peers_write(struct xco_peers *peers, int64_t now_ns, struct xco_arrivals *arrivals) {
    for (size_t i = 0; i < peers->count; i++) {
        const size_t host = (peers->next + i) % peers->count;
        if (is_due(peers, host, now_ns)) {
            peers->next = host + 1;
            peers->list[host].wrote_ns = now_ns;
            *arrivals = tell(peers, host);
            return true;
        }
    }
    return false;
}

bool xco_peers_fresh(const struct xco_peer *peer, int64_t now_ns, int64_t silence_ns) {
    return peer->heard_ns != 0 && now_ns - peer->heard_ns < silence_ns;
}
