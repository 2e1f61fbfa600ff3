/* Runs the switch in threads of its own, and changes it between their steps. */
#include "forward/threads.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

/* Return whether a call was made, or what waited for this moment was done. */
static bool serve(struct zovn_threads *threads) {
    if (!zovn_mailbox_waits(&threads->mailbox) && !zovn_switch_wants_alone(threads->vswitch))
        return false;
    zovn_pause_begin(&threads->pause, threads->wakes);
    zovn_switch_settle(threads->vswitch);
    zovn_mailbox_serve(&threads->mailbox);
    zovn_pause_end(&threads->pause);
    return true;
}

static bool pause_or_serve(struct zovn_thread *thread) {
    struct zovn_threads *all = thread->all;
    return thread->number ? zovn_pause_join(&all->pause, thread->number) : serve(all);
}

static void *forward(void *context) {
    struct zovn_thread *thread = context;
    prctl(PR_SET_TIMERSLACK, 1);
    while (thread->all->running) {
        bool moved = zovn_loop_step(&thread->loop);
        bool paused = pause_or_serve(thread);
        if (!moved && !paused)
            zovn_loop_rest(&thread->loop);
    }
    return NULL;
}

static bool open_loops(struct zovn_threads *threads) {
    for (uint32_t i = 0; i < threads->count; i++) {
        struct zovn_thread *thread = &threads->each[i];
        *thread = (struct zovn_thread){.all = threads, .number = i};
        if (!zovn_wake_open(&threads->wakes[i]) ||
            !zovn_loop_open(&thread->loop, threads->vswitch, i, threads->wakes))
            return false;
    }
    return zovn_nap_hold(&threads->each[0].loop.nap, threads->mailbox.event);
}

const char *zovn_threads_start(struct zovn_threads *threads, const struct zovn_settings *settings) {
    const char *problem = NULL;
    int error = 0;
    *threads = (struct zovn_threads){.running = true, .count = settings->threads};
    threads->vswitch = zovn_switch_new(settings, &problem);
    if (!threads->vswitch)
        return problem;
    zovn_pause_init(&threads->pause, threads->count);
    if (!zovn_mailbox_init(&threads->mailbox) || !open_loops(threads))
        return strerror(errno);
    for (uint32_t i = 0; i < threads->count && !error; i++)
        error = pthread_create(&threads->each[i].thread, NULL, forward, &threads->each[i]);
    return error ? strerror(error) : NULL;
}

static void end(void *context) {
    struct zovn_threads *threads = context;
    threads->running = false;
}

void zovn_threads_stop(struct zovn_threads *threads) {
    zovn_mailbox_send(&threads->mailbox, end, threads);
    for (uint32_t i = 0; i < threads->count; i++)
        pthread_join(threads->each[i].thread, NULL);
    zovn_switch_free(threads->vswitch);
    zovn_mailbox_close(&threads->mailbox);
    zovn_pause_close(&threads->pause);
    for (uint32_t i = 0; i < threads->count; i++) {
        zovn_loop_close(&threads->each[i].loop);
        zovn_wake_close(&threads->wakes[i]);
    }
}
