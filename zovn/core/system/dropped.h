/* The kernel's counter of what an interface dropped of what was to be sent: a TAP at its full queue, a veth of which
 * the other end is down. */
#ifndef ZOVN_SYSTEM_DROPPED_H
#define ZOVN_SYSTEM_DROPPED_H

#include <stdint.h>

/* Return it, of an interface in the calling thread's network namespace; 0 if there is none. */
uint64_t zovn_dropped(const char *interface);

#endif
