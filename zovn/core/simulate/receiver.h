// TCP's receiving half: order, messages, and acknowledgements (delayed, immediate, selective).
#ifndef RECEIVER_H
#define RECEIVER_H

#include "tcp.h"

void receiver_take(struct tcp *tcp, uint32_t endpoint, const struct packet *packet);

// Handle EVENT_ACKNOWLEDGE.
void receiver_timer(struct tcp *tcp, uint32_t endpoint);

#endif
