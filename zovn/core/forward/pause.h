/* A moment in which only the first of several threads runs, between two steps of each of them. */
#ifndef ZOVN_FORWARD_PAUSE_H
#define ZOVN_FORWARD_PAUSE_H

#include <semaphore.h>

#include "forward/wake.h"
#include "switch/settings.h"

struct zovn_pause {
    atomic_bool wanted;
    sem_t waiting; /* posted by each thread that waits */
    sem_t over[ZOVN_MOST_THREADS];
    uint32_t count; /* of all threads */
};

void zovn_pause_init(struct zovn_pause *pause, uint32_t count);
void zovn_pause_close(struct zovn_pause *pause);

/* The first thread's: return when all others wait. */
void zovn_pause_begin(struct zovn_pause *pause, struct zovn_wake *wakes);
void zovn_pause_end(struct zovn_pause *pause);

/* Another thread's: wait if that is wanted; return whether it was. */
bool zovn_pause_join(struct zovn_pause *pause, uint32_t number);

#endif
