/* Work of a known duration, in turns of a loop: the CPU clocks of a guest also count what the
   hypervisor takes away. */
#ifndef WORK_H
#define WORK_H

#include <time.h>

enum { TRIALS = 200, TURNS = 100000 };
static volatile unsigned long turns;

static inline long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void work(unsigned long count) {
    for (unsigned long i = 0; i < count; i++)
        turns = i;
}

/* Turns of the loop in a microsecond: the most that any trial had, for the hypervisor takes the
   CPU away during some. */
static inline unsigned long turns_per_us(void) {
    unsigned long best = 1;
    for (int i = 0; i < TRIALS; i++) {
        long long start = now_ns();
        work(TURNS);
        unsigned long rate = TURNS * 1000LL / (now_ns() - start);
        if (rate > best)
            best = rate;
    }
    return best;
}

#endif
