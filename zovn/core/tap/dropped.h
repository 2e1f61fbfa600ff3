/* The kernel's counter of what an interface dropped when its queue was full. */
#ifndef ZOVN_TAP_DROPPED_H
#define ZOVN_TAP_DROPPED_H

#include <stdint.h>

/* Return it, of an interface in the calling thread's network namespace; 0 if there is none. */
uint64_t zovn_tap_dropped(const char *interface);

#endif
