// TCP's sending half.
#include "sender.h"
#include "window.h"

#define MOST_BACKOFF 6

static uint32_t flight(const struct endpoint *e) {
    return e->next - e->una;
}

static uint32_t count(uint64_t bits) {
    return (uint32_t)__builtin_popcountll(bits);
}

static uint64_t to_repeat(const struct endpoint *e) {
    return e->lost & ~e->again & ~e->sacked;
}

// Segments in the network, as far as the sender knows (RFC 6675).
static uint32_t pipe_of(const struct endpoint *e) {
    return flight(e) - count(e->sacked) - count(to_repeat(e));
}

static uint32_t payload_of(const struct tcp *tcp, const struct endpoint *e, uint32_t sequence) {
    return sequence % e->segments == e->segments - 1 ? e->tail : tcp_payload(tcp->config);
}

static void fill(const struct tcp *tcp, uint32_t endpoint, struct packet *packet) {
    const struct endpoint *e = &tcp->endpoints[endpoint], *peer = &tcp->endpoints[endpoint ^ 1];
    packet->endpoint = endpoint ^ 1;
    packet->source = topology_vm(tcp->topology, e->host, e->vm);
    packet->to_host = peer->host;
    packet->to_vm = peer->vm;
    packet->class = e->class;
    packet->hash = e->hash;
    packet->sent_ps = tcp_now(tcp);
    packet->echo_ps = e->recent_ps;
    packet->ack = e->expected;
    packet->early = e->early;
}

static void send(struct tcp *tcp, uint32_t endpoint, uint32_t sequence, uint32_t payload) {
    uint32_t index = packets_take(&tcp->network->packets);
    struct packet *packet = &tcp->network->packets.all[index];
    fill(tcp, endpoint, packet);
    packet->sequence = sequence;
    packet->has_data = payload > 0;
    packet->length = (uint16_t)(TCP_HEADERS + payload);
    tcp->endpoints[endpoint].unacknowledged = false;
    tcp->counts.sent++;
    topology_send(tcp->topology, tcp->network, index);
}

void sender_send_ack(struct tcp *tcp, uint32_t endpoint) {
    send(tcp, endpoint, 0, 0);
}

static int64_t timeout_of(const struct tcp *tcp, const struct endpoint *e) {
    int64_t least = tcp->config->rto_min_ps, usual = e->srtt_ps + 4 * e->rttvar_ps;
    return ((usual > least ? usual : least) << e->backoff) + tcp->config->rto_slop_ps;
}

static void schedule_timer(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->timer_ps = e->deadline_ps;
    events_add(&tcp->network->events, e->timer_ps, EVENT_RETRANSMIT, endpoint, 0);
}

// The timer's event stays where it is when the deadline moves away: it looks again.
static void restart_timer(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->deadline_ps = tcp_now(tcp) + timeout_of(tcp, e);
    if (e->timer_ps == 0 || e->deadline_ps < e->timer_ps)
        schedule_timer(tcp, endpoint);
}

static void repeat(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    uint32_t at = (uint32_t)__builtin_ctzll(to_repeat(e));
    e->again |= UINT64_C(1) << at;
    tcp->counts.retransmitted++;
    send(tcp, endpoint, e->una + at, payload_of(tcp, e, e->una + at));
}

static void send_new(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    uint32_t sequence = e->next++;
    if (flight(e) == 1)
        restart_timer(tcp, endpoint);
    send(tcp, endpoint, sequence, payload_of(tcp, e, sequence));
}

static void pump(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    while (pipe_of(e) < window_segments(e)) {
        if (to_repeat(e))
            repeat(tcp, endpoint);
        else if (e->next != e->limit && flight(e) < (uint32_t)tcp->config->window)
            send_new(tcp, endpoint);
        else
            return;
    }
}

void sender_write(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    bool idle = flight(e) == 0 && tcp_now(tcp) - e->heard_ps >= timeout_of(tcp, e);
    if (idle && tcp->config->restart_idle)
        window_restart(tcp, e);
    e->limit += e->segments;
    pump(tcp, endpoint);
}

static void sample(const struct tcp *tcp, struct endpoint *e, int64_t echo_ps) {
    int64_t rtt = tcp_now(tcp) - echo_ps, error = rtt - e->srtt_ps;
    e->srtt_ps = e->sampled ? e->srtt_ps + error / 8 : rtt;
    e->rttvar_ps =
        e->sampled ? e->rttvar_ps + ((error < 0 ? -error : error) - e->rttvar_ps) / 4 : rtt / 2;
    e->base_ps = !e->sampled || rtt < e->base_ps ? rtt : e->base_ps;
    e->round_ps = !e->sampled || rtt < e->round_ps ? rtt : e->round_ps;
    e->sampled = true;
}

static uint64_t shifted(uint64_t bits, uint32_t by) {
    return by < 64 ? bits >> by : 0;
}

static void advance(struct tcp *tcp, uint32_t endpoint, uint32_t by) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->una += by;
    e->sacked = shifted(e->sacked, by);
    e->lost = shifted(e->lost, by);
    e->again = shifted(e->again, by);
    e->duplicates = e->backoff = 0;
    e->deadline_ps = 0;
    if (flight(e))
        restart_timer(tcp, endpoint);
    if (!e->recovering)
        window_grow(tcp, e, by);
    else if ((int32_t)(e->una - e->recover) >= 0)
        e->recovering = false;
}

// A segment is lost if three above it have arrived, or if it is the first on entry (RFC 6675).
static void mark_lost(struct endpoint *e) {
    uint64_t above = e->sacked;
    for (uint32_t at = 0; count(above) >= 3; above &= ~(UINT64_C(1) << at), at++)
        e->lost |= UINT64_C(1) << at & ~e->sacked;
}

static void enter_recovery(struct tcp *tcp, struct endpoint *e) {
    tcp->counts.recoveries++;
    e->recovering = true;
    e->recover = e->next;
    e->lost = 1;
    e->again = 0;
    window_reduce(tcp, e);
}

void sender_acknowledged(struct tcp *tcp, uint32_t endpoint, const struct packet *packet) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    uint32_t by = packet->ack - e->una;
    if (by > flight(e))
        return; // older than one that has arrived
    if (by > 0) {
        sample(tcp, e, packet->echo_ps);
        advance(tcp, endpoint, by);
    } else if (!packet->has_data && flight(e) > 0) {
        e->duplicates++;
    }
    e->sacked |= packet->early;
    if (e->duplicates >= 3 && !e->recovering && (int32_t)(e->una - e->recover) >= 0)
        enter_recovery(tcp, e);
    if (e->recovering)
        mark_lost(e);
    pump(tcp, endpoint);
}

static void time_out(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    tcp->counts.timeouts++;
    window_collapse(tcp, e);
    e->backoff += e->backoff < MOST_BACKOFF;
    e->recovering = false;
    e->recover = e->next;
    e->lost = shifted(UINT64_MAX, 64 - flight(e));
    e->again = 0;
    e->duplicates = 0;
    restart_timer(tcp, endpoint);
    pump(tcp, endpoint);
}

void sender_timer(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    if (e->timer_ps != tcp_now(tcp))
        return; // an earlier one has replaced it
    e->timer_ps = 0;
    if (e->deadline_ps == 0)
        return;
    if (e->deadline_ps <= tcp_now(tcp))
        time_out(tcp, endpoint);
    else
        schedule_timer(tcp, endpoint);
}
