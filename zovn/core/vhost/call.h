/* Notifies guests by their eventfds, without ever waiting.
 *
 * A guest shares its eventfd's flags and counter: it may make both such that a write waits. What the
 * kernel itself signals does not wait, whatever they are. */
#ifndef ZOVN_VHOST_CALL_H
#define ZOVN_VHOST_CALL_H

#include <stdbool.h>

/* Once, before there are ports. Return false with errno. */
bool zovn_call_start(void);

/* Add one to an eventfd's counter; nothing happens if that is full, or if the file is no eventfd. Any
 * thread may call. */
void zovn_call(int file);

/* Return whether a file is an eventfd: with another one, even a look at it may wait. */
bool zovn_call_usable(int file);

#endif
