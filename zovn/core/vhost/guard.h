/* Keeps a front end that truncates the memory it shares from ending the switch.
 *
 * An access behind the end of a mapped file raises SIGBUS. If the address lies in a front end's
 * memory, all of that mapping is replaced by memory that is zero, and noted as lost: the access goes
 * on, and the port is stopped. Any other SIGBUS ends the process, as it would without a guard. */
#ifndef ZOVN_VHOST_GUARD_H
#define ZOVN_VHOST_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Once, before there are ports. Return false with errno. */
bool zovn_guard_install(void);

/* Guard a mapping, or the pages of a part of one. A fault in it sets `*lost`. What is guarded already
 * takes no more room: a front end may have the same record looked at any number of times. Return false
 * if there is no room. */
bool zovn_guard_add(const void *begin, uint64_t bytes, bool *lost);

/* Guard no longer what sets `*lost`: before it is unmapped. */
void zovn_guard_drop(const bool *lost);

/* From here on this thread touches, but for its own memory, that of one front end, wherever it is mapped: a
 * fault replaces the page, and sets `*lost`. NULL: of none. */
void zovn_guard_thread(bool *lost);

#endif
