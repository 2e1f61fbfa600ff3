// What pairs of hosts demand, by their reports.
#include "controller/engine/demands.h"

#include <stddef.h>

// How long a pair stays greedy after something waited, so that TCP's pauses cost nothing.
#define GREEDY_NS 500000000u
// What a pair may send more, so that it can begin to grow from nothing. A share of the line would
// add up: 64 quiet pairs would hold more than half of a link if each had a hundredth of it.
#define MARGIN_BPS 1000000u
#define QUIET_BYTES 3028u // two full frames wait of a slow sender too, while its gate opens
#define GROWN_BPS(kbps) (UINT64_C(1500) * (kbps) + MARGIN_BPS) // half more than that, and a margin

// Returns the index of the pair to a destination; the number of pairs if none is known.
static size_t find(const struct xco_peer *peer, uint16_t destination) {
    size_t at = 0;
    while (at < peer->pair_count && peer->pairs[at].destination != destination) {
        at++;
    }
    return at;
}

// Returns a pair as a report leaves it. One that was not reported for long begins greedily.
static struct xco_pair noted(const struct xco_pair *before, const struct xco_waiting *entry,
                             uint64_t now_ns) {
    const uint64_t grown = GROWN_BPS(entry->rate_kbps);
    struct xco_pair pair = {now_ns, now_ns, grown, entry->destination};
    if (before == NULL || now_ns - before->reported_ns >= GREEDY_NS) {
        return pair;
    }
    pair.waited_ns = entry->backlog_bytes > QUIET_BYTES ? now_ns : before->waited_ns;
    // one that still fits is kept: each change is news to all who share links with the pair
    const bool fits = grown <= before->demand_bps && grown >= before->demand_bps / 4 * 3;
    pair.demand_bps = fits ? before->demand_bps : grown;
    return pair;
}

// Returns the place for a new pair: a free one, or that of the pair that was not reported longest.
static struct xco_pair *place(struct xco_peer *peer) {
    if (peer->pair_count < XCO_ENTRIES_MAX) {
        return &peer->pairs[peer->pair_count++];
    }
    struct xco_pair *oldest = &peer->pairs[0];
    for (size_t i = 1; i < peer->pair_count; i++) {
        if (peer->pairs[i].reported_ns < oldest->reported_ns) {
            oldest = &peer->pairs[i];
        }
    }
    return oldest;
}

void xco_demands_note(struct xco_peer *peer, uint64_t now_ns) {
    const struct xco_report *report = &peer->report;
    for (size_t i = 0; i < report->count; i++) { // the known ones first: a new one may replace one
        const size_t at = find(peer, report->entries[i].destination);
        if (at < peer->pair_count) {
            peer->pairs[at] = noted(&peer->pairs[at], &report->entries[i], now_ns);
        }
    }
    for (size_t i = 0; i < report->count; i++) {
        if (find(peer, report->entries[i].destination) == peer->pair_count) {
            *place(peer) = noted(NULL, &report->entries[i], now_ns);
        }
    }
}

uint64_t xco_demands_of(const struct xco_peer *peer, const struct xco_waiting *entry,
                        uint64_t now_ns) {
    const size_t at = find(peer, entry->destination);
    const bool greedy = entry->backlog_bytes > QUIET_BYTES || at == peer->pair_count ||
                        now_ns - peer->pairs[at].waited_ns < GREEDY_NS;
    return greedy ? XCO_FILL_GREEDY : peer->pairs[at].demand_bps;
}

bool xco_demands_ended(const struct xco_peer *peer, uint64_t since_ns, uint64_t now_ns) {
    for (size_t i = 0; i < peer->pair_count; i++) {
        const uint64_t end_ns = peer->pairs[i].waited_ns + GREEDY_NS;
        if (end_ns > since_ns && end_ns <= now_ns) {
            return true;
        }
    }
    return false;
}
