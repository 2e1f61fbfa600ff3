// A binary heap of timers, earliest first.
#include "controller/engine/timers.h"

#include <stdlib.h>

static bool grow(struct xco_timers *timers) {
    const size_t room = timers->room == 0 ? 64 : 2 * timers->room;
    struct xco_timer *heap = realloc(timers->heap, room * sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    timers->heap = heap;
    timers->room = room;
    return true;
}

static void swap(struct xco_timer *a, struct xco_timer *b) {
    const struct xco_timer kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct xco_timers *timers, size_t at) {
    while (at > 0 && timers->heap[at].at_ns < timers->heap[(at - 1) / 2].at_ns) {
        swap(&timers->heap[at], &timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct xco_timers *timers, size_t at) {
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < timers->count; child++) {
            if (timers->heap[child].at_ns < timers->heap[least].at_ns) {
                least = child;
            }
        }
        if (least == at) {
            return;
        }
        swap(&timers->heap[at], &timers->heap[least]);
        at = least;
    }
}

bool xco_timers_add(struct xco_timers *timers, struct xco_timer timer) {
    if (timers->count == timers->room && !grow(timers)) {
        return false;
    }
    timers->heap[timers->count] = timer;
    sift_up(timers, timers->count++);
    return true;
}

bool xco_timers_take_due(struct xco_timers *timers, uint64_t now_ns, struct xco_timer *due) {
    if (timers->count == 0 || timers->heap[0].at_ns > now_ns) {
        return false;
    }
    *due = timers->heap[0];
    timers->heap[0] = timers->heap[--timers->count];
    sift_down(timers, 0);
    return true;
}

uint64_t xco_timers_next(const struct xco_timers *timers) {
    return timers->count == 0 ? UINT64_MAX : timers->heap[0].at_ns;
}

void xco_timers_free(struct xco_timers *timers) {
    free(timers->heap);
    *timers = (struct xco_timers){0};
}
