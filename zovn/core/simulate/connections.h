// TCP's connections: set up, written to, and given what arrives.
#ifndef CONNECTIONS_H
#define CONNECTIONS_H

#include "tcp.h"

// Set up an endpoint; `bytes` is the size of each message that it sends.
void connections_set_up(struct tcp *tcp, uint32_t endpoint, uint32_t host, uint32_t vm,
                        uint32_t class, uint32_t bytes);

// A packet for an endpoint has arrived; frees it.
void connections_receive(struct tcp *tcp, uint32_t packet);

#endif
