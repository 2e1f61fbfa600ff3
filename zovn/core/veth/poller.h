/* The UDP socket through which the port runs the container's NAPI: a read that finds nothing polls. */
#ifndef ZOVN_VETH_POLLER_H
#define ZOVN_VETH_POLLER_H

#include <stddef.h>
#include <stdint.h>

enum { ZOVN_BUDGET = 64 }; /* frames of one run; a poll runs the NAPI up to twice */

/* Return a socket on the interface, or a negative errno. */
int zovn_poller_open(uint32_t interface);

/* Read the first frame, from which the socket learns its NAPI; return its length, 0 if it is not here. */
uint32_t zovn_poller_first(int poller, uint8_t *to, size_t room);

/* Run the NAPI: it receives up to twice ZOVN_BUDGET frames. */
void zovn_poller_run(int poller);

#endif
