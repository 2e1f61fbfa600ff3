/* Wakes a thread that sleeps, when another one has something for it.
 *
 * A thread asks to be woken, steps once more, and sleeps if that moved nothing. Another one shows what it
 * has, and then sees whether the thread has asked. So one of the two sees the other. */
#ifndef ZOVN_FORWARD_WAKE_H
#define ZOVN_FORWARD_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct zovn_wake {
    _Alignas(64) atomic_bool asked;
    int event; /* ends the thread's sleep */
};

/* Return false with errno. */
bool zovn_wake_open(struct zovn_wake *wake);
void zovn_wake_close(struct zovn_wake *wake);

/* The thread's side: ask, or ask no longer. */
void zovn_wake_ask(struct zovn_wake *wake, bool asked);

/* The other's side, after it has shown something to these threads, as bits. */
void zovn_wake_shown(struct zovn_wake *wakes, uint32_t threads);

/* End its sleep, or its next one, whether it has asked or not. */
void zovn_wake_up(struct zovn_wake *wake);

#endif
