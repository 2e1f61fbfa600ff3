/* Threads wait on semaphores. */
#include "forward/pause.h"

#include <errno.h>

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) < 0 && errno == EINTR) {
    }
}

void zovn_pause_init(struct zovn_pause *pause, uint32_t count) {
    atomic_init(&pause->wanted, false);
    pause->count = count;
    sem_init(&pause->waiting, 0, 0);
    for (uint32_t i = 0; i < count; i++)
        sem_init(&pause->over[i], 0, 0);
}

void zovn_pause_close(struct zovn_pause *pause) {
    sem_destroy(&pause->waiting);
    for (uint32_t i = 0; i < pause->count; i++)
        sem_destroy(&pause->over[i]);
}

void zovn_pause_begin(struct zovn_pause *pause, struct zovn_wake *wakes) {
    atomic_store(&pause->wanted, true);
    for (uint32_t i = 1; i < pause->count; i++)
        zovn_wake_up(&wakes[i]);
    for (uint32_t i = 1; i < pause->count; i++)
        wait_for(&pause->waiting);
}

void zovn_pause_end(struct zovn_pause *pause) {
    atomic_store(&pause->wanted, false);
    for (uint32_t i = 1; i < pause->count; i++)
        sem_post(&pause->over[i]);
}

bool zovn_pause_join(struct zovn_pause *pause, uint32_t number) {
    if (!atomic_load(&pause->wanted))
        return false;
    sem_post(&pause->waiting);
    wait_for(&pause->over[number]);
    return true;
}
