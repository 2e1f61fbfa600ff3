/* The threads that forward: each steps its part of the switch, and sleeps while nothing moves there.
 *
 * They alone touch the switch and the rings. The first one makes the calls of the mailbox, while the
 * others wait between two of their steps. */
#ifndef ZOVN_FORWARD_THREADS_H
#define ZOVN_FORWARD_THREADS_H

#include "forward/loop.h"
#include "forward/mailbox.h"
#include "forward/pause.h"

struct zovn_threads;

struct zovn_thread {
    struct zovn_threads *all;
    uint32_t number;
    pthread_t thread;
    struct zovn_loop loop;
};

struct zovn_threads {
    struct zovn_switch *vswitch;
    struct zovn_mailbox mailbox;
    struct zovn_pause pause;
    struct zovn_wake wakes[ZOVN_MOST_THREADS];
    uint32_t count;
    bool running; /* changed by calls alone, as the rest is */
    struct zovn_thread each[ZOVN_MOST_THREADS];
};

/* Make a switch, and start its threads; return NULL, or what went wrong. */
const char *zovn_threads_start(struct zovn_threads *threads, const struct zovn_settings *settings);

/* End them, and free the switch. */
void zovn_threads_stop(struct zovn_threads *threads);

#endif
