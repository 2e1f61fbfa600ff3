// The clock of both loops.
#include "common/clock.h"

#include <time.h>

int64_t xco_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
