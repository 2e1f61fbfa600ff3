/* Hands calls to the forwarding thread, one by one. */
#include "forward/mailbox.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "system/log.h"

enum { SLICES = 100, SLICE_NS = 100000000, SECOND_NS = 1000000000 };

bool zovn_mailbox_init(struct zovn_mailbox *mailbox) {
    pthread_mutex_init(&mailbox->sender, NULL);
    atomic_init(&mailbox->message, NULL);
    sem_init(&mailbox->done, 0, 0);
    mailbox->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return mailbox->event >= 0;
}

void zovn_mailbox_close(struct zovn_mailbox *mailbox) {
    close(mailbox->event);
    sem_destroy(&mailbox->done);
    pthread_mutex_destroy(&mailbox->sender);
}

static bool wait_slice(sem_t *done) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLICE_NS;
    until.tv_sec += until.tv_nsec / SECOND_NS;
    until.tv_nsec %= SECOND_NS;
    return sem_clockwait(done, CLOCK_MONOTONIC, &until) == 0;
}

/* Slices, not one long wait: a process that was stopped meanwhile has waited for one of them. */
static void wait_for_answer(struct zovn_mailbox *mailbox) {
    for (int i = 0; i < SLICES; i++)
        if (wait_slice(&mailbox->done) &&
            !atomic_load_explicit(&mailbox->message, memory_order_acquire))
            return;
    zovn_say("the forwarding thread does not answer: ending, since its memory cannot be released");
    abort();
}

/* The event comes first: who sees the message can then take the event. */
void zovn_mailbox_send(struct zovn_mailbox *mailbox, void (*call)(void *context), void *context) {
    const struct zovn_message message = {call, context};
    pthread_mutex_lock(&mailbox->sender);
    eventfd_write(mailbox->event, 1);
    atomic_store_explicit(&mailbox->message, &message, memory_order_release);
    wait_for_answer(mailbox);
    pthread_mutex_unlock(&mailbox->sender);
}

bool zovn_mailbox_serve(struct zovn_mailbox *mailbox) {
    const struct zovn_message *message =
        atomic_load_explicit(&mailbox->message, memory_order_acquire);
    if (!message)
        return false;
    eventfd_t events;
    eventfd_read(mailbox->event, &events);
    message->call(message->context);
    atomic_store_explicit(&mailbox->message, NULL, memory_order_release);
    sem_post(&mailbox->done);
    return true;
}
