// TCP's receiving half.
#include "receiver.h"
#include "sender.h"

static void advance(struct endpoint *e) {
    do {
        e->early >>= 1;
        e->expected++;
    } while (e->early & 1);
}

// Call the application, which may answer: the answer acknowledges too.
static void deliver(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    const struct endpoint *peer = &tcp->endpoints[endpoint ^ 1];
    for (; e->expected / peer->segments > e->delivered; e->delivered++)
        tcp->on_message(tcp->application, endpoint);
}

static void delay_ack(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->ack_deadline_ps = tcp_now(tcp) + tcp->config->delayed_ack_ps;
    if (e->ack_timer_ps)
        return;
    e->ack_timer_ps = e->ack_deadline_ps;
    events_add(&tcp->network->events, e->ack_timer_ps, EVENT_ACKNOWLEDGE, endpoint, 0);
}

static void take_next(struct tcp *tcp, uint32_t endpoint, const struct packet *packet) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    bool second = e->unacknowledged, filled = e->early != 0;
    if (!second)
        e->recent_ps = packet->sent_ps;
    advance(e);
    e->unacknowledged = true;
    deliver(tcp, endpoint);
    if (!e->unacknowledged)
        return;
    if (second || filled)
        sender_send_ack(tcp, endpoint);
    else
        delay_ack(tcp, endpoint);
}

void receiver_take(struct tcp *tcp, uint32_t endpoint, const struct packet *packet) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    uint32_t ahead = packet->sequence - e->expected;
    if (ahead == 0) {
        take_next(tcp, endpoint, packet);
        return;
    }
    if (ahead < 64) {
        e->early |= UINT64_C(1) << ahead;
        tcp->counts.reordered++;
    }
    sender_send_ack(tcp, endpoint);
}

void receiver_timer(struct tcp *tcp, uint32_t endpoint) {
    struct endpoint *e = &tcp->endpoints[endpoint];
    e->ack_timer_ps = 0;
    if (!e->unacknowledged)
        return;
    if (e->ack_deadline_ps <= tcp_now(tcp)) {
        sender_send_ack(tcp, endpoint);
        return;
    }
    e->ack_timer_ps = e->ack_deadline_ps;
    events_add(&tcp->network->events, e->ack_timer_ps, EVENT_ACKNOWLEDGE, endpoint, 0);
}
