// TCP's sending half: what may be sent, loss recovery with SACK, and the retransmission timer.
#ifndef SENDER_H
#define SENDER_H

#include "tcp.h"

// The application writes one more message.
void sender_write(struct tcp *tcp, uint32_t endpoint);

void sender_send_ack(struct tcp *tcp, uint32_t endpoint);

// A packet acknowledges what this endpoint has sent.
void sender_acknowledged(struct tcp *tcp, uint32_t endpoint, const struct packet *packet);

// Handle EVENT_RETRANSMIT, which was set for this time.
void sender_timer(struct tcp *tcp, uint32_t endpoint);

#endif
