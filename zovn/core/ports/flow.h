/* Which of several queues a frame's flow has. */
#ifndef ZOVN_PORTS_FLOW_H
#define ZOVN_PORTS_FLOW_H

#include "rings/frame.h"

/* Return a queue below `count`: the same for all frames of a flow. A flow is a TCP connection, else
 * what two IP addresses exchange, else what two Ethernet addresses do. Ports of UDP do not count, as
 * by default in network cards: fragments do not have them. */
uint32_t zovn_flow_queue(const struct zovn_frame *frame, uint32_t count);

#endif
