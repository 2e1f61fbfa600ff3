// What a receiver lets each sender send to it, while it lives without a controller. Pure.
#include "coordinator/engine/offers.h"

#include <math.h>

#include "common/least.h"

#define IDLE_NS 500000000      // between computations while nothing arrives
#define LONGEST_NS 1000000000  // a longer period tells nothing: begin again
#define TRAFFIC_PACKETS 3u     // that arrive in a period: fewer are messages, or need no offer
#define OWN_SHARE 0.8          // of the port in use, from which on marks are its own
#define SMOOTHING_S 0.01       // time constant of what arrives from a host
#define AIM 1.0                // given out: gates open at a little less, which empties the queue
#define MESSAGES_BPS 100000u   // of each sender, past its gate
#define DRAINING_AIM 0.95 // while the queue stands: gates let a little more pass than they should
#define NEWS 200 // a change by this part of the port is worth new offers
#define GROWTH(rate) ((rate) + (rate) / 8) // what a sender that nothing holds back is given

static struct xco_arrived sum(const struct xco_arrived *arrived, size_t count) {
    struct xco_arrived all = {0};
    for (size_t i = 0; i < count; i++) {
        all.packets += arrived[i].packets;
        all.bytes += arrived[i].bytes;
        all.marks += arrived[i].marks;
    }
    return all;
}

// Notes what arrived from a host in a period.
static void note(struct xco_peer *peer, int64_t now_ns, const struct xco_arrived *now,
                 double seconds, bool own_marks) {
    const uint64_t packets = now->packets - peer->seen.packets;
    const double rate_bps = 8.0 * (double)(now->bytes - peer->seen.bytes) / seconds;
    const double known_bps = (double)peer->arriving_bps;
    const double weight = 1.0 - exp(-seconds / SMOOTHING_S);
    peer->between_marks += own_marks ? 0 : now->marks - peer->seen.marks;
    peer->arriving_bps = (uint64_t)(known_bps + weight * (rate_bps - known_bps));
    peer->arrived_ns = packets >= TRAFFIC_PACKETS ? now_ns : peer->arrived_ns;
    peer->seen = *now;
}

static void note_all(struct xco_peers *peers, int64_t now_ns, const struct xco_arrived *arrived,
                     double seconds, bool own_marks) {
    for (size_t host = 0; host < peers->count; host++) {
        note(&peers->list[host], now_ns, &arrived[host], seconds, own_marks);
    }
}

// Marks of a port in use are its own, and tell the budget. A port with room to spare has no queue:
// its packets met one on a link before it, of which only the senders can make something.
static bool observe(struct xco_peers *peers, const struct xco_arrived *all,
                    const struct xco_arrived *coordinated, uint64_t coordinated_before,
                    double seconds) {
    const double port_bps = (double)peers->config.port_bps;
    struct xco_budget_period period = {
        .seconds = seconds,
        .bits = 8.0 * (double)(all->bytes - peers->all.bytes),
        .coordinated_bits = 8.0 * (double)(coordinated->bytes - coordinated_before),
        .packets = (double)(all->packets - peers->all.packets),
        .marks = (double)(all->marks - peers->all.marks),
    };
    const bool own = period.bits >= OWN_SHARE * port_bps * seconds;
    period.marks = own ? period.marks : 0.0;
    xco_budget_observe(&peers->budget, &period, port_bps);
    return own;
}

static void settle(struct xco_peers *peers) {
    const uint64_t port_bps = peers->config.port_bps, before = peers->shared_bps;
    const double aim = peers->budget.calm_s > 0.0 ? AIM : DRAINING_AIM;
    const uint64_t shared = (uint64_t)xco_budget_shared(&peers->budget, (double)port_bps, aim);
    const bool whole = shared >= (uint64_t)(AIM * (double)port_bps);
    const uint64_t apart = shared > before ? shared - before : before - shared;
    peers->shared_bps = whole || apart >= port_bps / NEWS ? shared : before;
}

// Returns what a host would send; 0: it sends nothing. One that says what it could send gets its
// share of that, any other one a little more than it sends.
static uint64_t demand(const struct xco_peers *peers, size_t host, int64_t now_ns,
                       int64_t silence_ns) {
    struct xco_peer *peer = &peers->list[host];
    const uint64_t wants = xco_peers_fresh(peer, now_ns, silence_ns) ? peer->told.wants_bps : 0;
    peer->arrived_ns = wants > 0 ? now_ns : peer->arrived_ns;
    if (peer->arrived_ns == 0 || now_ns - peer->arrived_ns >= XCO_PEER_ACTIVE_NS) {
        return 0;
    }
    const uint64_t wanted = wants > 0 ? wants : GROWTH(peer->arriving_bps);
    return xco_most(1, xco_least(wanted, peers->config.port_bps));
}

// Notes what all hosts would send, by what weight, and what they are promised; returns how many
// send. What a silent host said counts no longer.
static size_t note_demands(struct xco_peers *peers, int64_t now_ns, int64_t silence_ns) {
    size_t active = 0;
    for (size_t host = 0; host < peers->count; host++) {
        const struct xco_peer *peer = &peers->list[host];
        const bool fresh = xco_peers_fresh(peer, now_ns, silence_ns);
        peers->demands[host] = (struct xco_demand){
            .rate_bps = demand(peers, host, now_ns, silence_ns),
            .guarantee_mbps = fresh ? peer->told.guarantee_mbps : 0,
            .weight = fresh && peer->told.weight > 0 ? peer->told.weight : 1,
        };
        active += peers->demands[host].rate_bps > 0;
    }
    return active;
}

// Offers each sender its share of what others leave, and at least its part if all used theirs: one
// that begins with less exceeds the port for a period, which its queue holds.
static void offer_all(struct xco_peers *peers, int64_t now_ns, int64_t silence_ns) {
    const size_t active = note_demands(peers, now_ns, silence_ns);
    const uint64_t messages = xco_least(active * MESSAGES_BPS, peers->shared_bps / 2);
    const uint64_t shared = peers->shared_bps - messages;
    xco_shares_grant(peers->demands, peers->count, shared);
    const uint64_t even = xco_shares_even(peers->demands, peers->count, shared);
    const uint64_t level = xco_shares_level(peers->demands, peers->count, shared);
    const uint64_t spare = xco_shares_spare(peers->demands, peers->count, shared);
    for (size_t host = 0; host < peers->count; host++) {
        const struct xco_demand *wanted = &peers->demands[host];
        const uint64_t own = xco_shares_part(wanted, even);
        const uint64_t share =
            xco_least(wanted->rate_bps, xco_shares_part(wanted, level)) + spare * wanted->weight;
        peers->list[host].offer_bps = wanted->rate_bps > 0 ? xco_most(1, xco_most(own, share)) : 0;
    }
}

// Begins a period without judging the one before.
static void begin(struct xco_peers *peers, int64_t now_ns, const struct xco_arrived *arrived) {
    for (size_t host = 0; host < peers->count; host++) {
        peers->list[host].seen = arrived[host];
        peers->list[host].arriving_bps = 0;
    }
    peers->all = sum(arrived, peers->count + 1);
    peers->counted_ns = now_ns;
    peers->budget = xco_budget_begin((double)peers->config.port_bps);
    peers->shared_bps = (uint64_t)(AIM * (double)peers->config.port_bps);
}

// Returns the bytes that hosts of the topology had sent by the last look.
static uint64_t bytes_before(const struct xco_peers *peers) {
    uint64_t bytes = 0;
    for (size_t host = 0; host < peers->count; host++) {
        bytes += peers->list[host].seen.bytes;
    }
    return bytes;
}

static void compute(struct xco_peers *peers, int64_t now_ns, int64_t silence_ns,
                    const struct xco_arrived *arrived, const struct xco_arrived *all) {
    const double seconds = (double)(now_ns - peers->counted_ns) / 1e9;
    const struct xco_arrived coordinated = sum(arrived, peers->count);
    const bool own = observe(peers, all, &coordinated, bytes_before(peers), seconds);
    note_all(peers, now_ns, arrived, seconds, own);
    settle(peers);
    offer_all(peers, now_ns, silence_ns);
    peers->all = *all;
    peers->counted_ns = now_ns;
}

void xco_offers_count(struct xco_peers *peers, int64_t now_ns, int64_t silence_ns,
                      const struct xco_arrived *arrived) {
    const struct xco_arrived all = sum(arrived, peers->count + 1);
    if (peers->counted_ns == 0 || now_ns - peers->counted_ns >= LONGEST_NS) {
        begin(peers, now_ns, arrived);
    } else if (all.packets != peers->all.packets || now_ns - peers->counted_ns >= IDLE_NS) {
        compute(peers, now_ns, silence_ns, arrived, &all);
    }
}
