/* A port that never runs out of frames, for threads under the thread sanitizer.
 *
 * Its peer is in the thread that has the port: what comes back is sent again, and what arrives is
 * checked: the frames of each sender in order, and each once. */
#ifndef ZOVN_TOOLS_ENDLESS_PORT_H
#define ZOVN_TOOLS_ENDLESS_PORT_H

#include "ports/port.h"

enum { ENDLESS_STATIONS = 8 };

/* Return a port whose peer is this station, from 0 on, and sends to all, by turns or as floods; or NULL. */
struct zovn_port *endless_port_new(uint32_t station);

/* Return how many frames came to any port so far. */
uint64_t endless_received(void);

#endif
