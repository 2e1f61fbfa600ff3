/* Sleep until one of many files becomes readable. */
#ifndef ZOVN_FORWARD_NAP_H
#define ZOVN_FORWARD_NAP_H

#include <stdbool.h>
#include <stdint.h>

struct zovn_nap {
    int epoll;
    uint64_t count;
    uint64_t missed; /* those that ended by their bound, although a peer had done something */
};

/* Return false with errno. */
bool zovn_nap_open(struct zovn_nap *nap);
void zovn_nap_close(struct zovn_nap *nap);

/* An eventfd ends a sleep as long as it is readable. Return false with errno. */
bool zovn_nap_hold(struct zovn_nap *nap, int event);

/* A file ends a sleep each time it is written to; -1: none. It is emptied then,
 * without waiting. A file that cannot be watched ends none. */
void zovn_nap_watch(struct zovn_nap *nap, int file);
void zovn_nap_unwatch(struct zovn_nap *nap, int file);

/* Sleep, for so long at most; return whether a file ended that. */
bool zovn_nap_sleep(struct zovn_nap *nap, uint64_t bound_ns);

/* After a sleep that its bound ended, something was found: count it if no file said so meanwhile. */
void zovn_nap_check(struct zovn_nap *nap);

#endif
