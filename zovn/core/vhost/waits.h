/* Bounds the time for which librte_vhost waits for a front end.
 *
 * One thread of librte_vhost serves all front ends, by calls that wait: for the rest of a message, and
 * for room to answer. It does not say which file a connection has, so the file is found by its socket's
 * path. */
#ifndef ZOVN_VHOST_WAITS_H
#define ZOVN_VHOST_WAITS_H

#include <stdbool.h>

/* Bound the waits of all connections to the socket at a path. Return false if there is none, or it
 * cannot be done. */
bool zovn_waits_bound(const char *path);

#endif
