/* Calls that other threads have the forwarding thread make between two steps.
 *
 * One message at a time. A sender waits until its call was made: what it hands over is then the
 * forwarding thread's, and what it takes away is no longer in use there. The receiver never waits
 * for a sender. */
#ifndef ZOVN_FORWARD_MAILBOX_H
#define ZOVN_FORWARD_MAILBOX_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

struct zovn_message {
    void (*call)(void *context);
    void *context;
};

struct zovn_mailbox {
    pthread_mutex_t sender;
    _Atomic(const struct zovn_message *) message;
    sem_t done;
    int event; /* readable while there is a message, or there will be one in a moment */
};

/* Return false with errno. */
bool zovn_mailbox_init(struct zovn_mailbox *mailbox);
void zovn_mailbox_close(struct zovn_mailbox *mailbox);

/* Have the receiver make a call, and wait for that. A receiver that does not answer for ten seconds
 * in which this process runs ends the process: memory must not be unmapped while it may be in use. */
void zovn_mailbox_send(struct zovn_mailbox *mailbox, void (*call)(void *context), void *context);

/* The receiver's side: return whether a call waits. */
static inline bool zovn_mailbox_waits(const struct zovn_mailbox *mailbox) {
    return atomic_load_explicit(&mailbox->message, memory_order_acquire);
}

/* Make the call that waits, if any; return whether there was one. */
bool zovn_mailbox_serve(struct zovn_mailbox *mailbox);

#endif
