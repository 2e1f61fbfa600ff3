/* Which frames of an interface are for a wire: the tunnel's, ARP and PFC. The kernel drops the others
 * before they take room in the wire's socket; they are the host's own. */
#ifndef ZOVN_WIRE_FILTER_H
#define ZOVN_WIRE_FILTER_H

#include <stdbool.h>

/* Have a packet socket take only those. Return false with errno. */
bool zovn_filter_attach(int file);

#endif
