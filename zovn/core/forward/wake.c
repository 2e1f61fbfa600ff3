/* Eventfds between threads. */
#include "forward/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

bool zovn_wake_open(struct zovn_wake *wake) {
    atomic_init(&wake->asked, false);
    wake->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return wake->event >= 0;
}

void zovn_wake_close(struct zovn_wake *wake) {
    close(wake->event);
}

/* Both sides write, and then read what the other one writes: the fences keep that order. */
void zovn_wake_ask(struct zovn_wake *wake, bool asked) {
    atomic_store_explicit(&wake->asked, asked, memory_order_relaxed);
    if (asked)
        atomic_thread_fence(memory_order_seq_cst);
}

void zovn_wake_shown(struct zovn_wake *wakes, uint32_t threads) {
    if (threads)
        atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; threads >> i; i++)
        if (threads >> i & 1 && atomic_load_explicit(&wakes[i].asked, memory_order_relaxed) &&
            atomic_exchange(&wakes[i].asked, false))
            zovn_wake_up(&wakes[i]);
}

void zovn_wake_up(struct zovn_wake *wake) {
    eventfd_write(wake->event, 1);
}
