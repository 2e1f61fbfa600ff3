/* A port whose rings are in this process: for tests, and to measure the switch alone. */
#ifndef ZOVN_PORTS_MEMORY_PORT_H
#define ZOVN_PORTS_MEMORY_PORT_H

#include "ports/port.h"

#pragma GCC visibility push(default)

/* Return a port that can hold `sent` frames from its peer, and `received` for it; or NULL. */
struct zovn_port *zovn_memory_port_new(uint32_t sent, uint32_t received);

void zovn_memory_port_offloads(struct zovn_port *port, uint32_t sends, uint32_t takes);

/* Have the port bounded as one of which each frame that is put is a system call. */
void zovn_memory_port_costly(struct zovn_port *port);

/* The peer's side. */

/* Send a frame; return whether there was room. `offload` may be NULL. */
bool zovn_memory_port_send(struct zovn_port *port, const uint8_t *bytes, uint32_t length,
                           const struct zovn_offload *offload);

/* Receive a frame into `to`, with room for ZOVN_MOST_BYTES; return its length, 0 if there is none. */
uint32_t zovn_memory_port_receive(struct zovn_port *port, uint8_t *to,
                                  struct zovn_offload *offload);

/* Take no frames of these classes, as bits, from now on; each class is then open by itself. */
void zovn_memory_port_shut(struct zovn_port *port, uint32_t classes);

/* Return how many frames may be sent now. */
uint32_t zovn_memory_port_free_heads(const struct zovn_port *port);

/* Return how many times the peer was notified. */
uint64_t zovn_memory_port_notifications(const struct zovn_port *port);

#pragma GCC visibility pop
#endif
