/* Steps a part of the switch, and sleeps while nothing moves. */
#include "forward/loop.h"

#include <stddef.h>
#include <time.h>

#include "forward/rest.h"

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool zovn_loop_open(struct zovn_loop *loop, struct zovn_switch *vswitch, uint32_t part,
                    struct zovn_wake *wakes) {
    *loop =
        (struct zovn_loop){.vswitch = vswitch, .part = part, .wakes = wakes, .read_ns = clock_ns()};
    loop->now_ns = loop->read_ns;
    if (!zovn_nap_open(&loop->nap))
        return false;
    zovn_nap_watch(&loop->nap, wakes[part].event);
    return true;
}

void zovn_loop_close(struct zovn_loop *loop) {
    zovn_nap_close(&loop->nap);
}

static void ask(const struct zovn_attachment *attached, bool notify) {
    if (attached->port && attached->ask)
        attached->ask(attached->port, notify);
}

static void ask_all(struct zovn_loop *loop, bool notify) {
    loop->asked = notify;
    zovn_wake_ask(&loop->wakes[loop->part], notify);
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        ask(&loop->attached[i], notify);
}

static void note_move(struct zovn_loop *loop) {
    if (loop->overslept)
        zovn_nap_check(&loop->nap);
    if (loop->asked)
        ask_all(loop, false);
    loop->idle = 0;
    loop->nap_ns = 0;
}

/* Time in which this process did not run does not count: a destination had no chance to take
 * anything then, and must not be treated as stalled. */
bool zovn_loop_step(struct zovn_loop *loop) {
    uint64_t read_ns = clock_ns(), elapsed_ns = read_ns - loop->read_ns;
    loop->read_ns = read_ns;
    loop->now_ns += elapsed_ns < ZOVN_MOST_ELAPSED_NS ? elapsed_ns : ZOVN_MOST_ELAPSED_NS;
    uint32_t shown = 0;
    bool moved = zovn_switch_step_part(loop->vswitch, loop->part, loop->now_ns, &shown) > 0;
    zovn_wake_shown(loop->wakes, shown);
    if (moved)
        note_move(loop);
    loop->overslept = false;
    return moved;
}

/* Return whether a file ended the sleep. */
static bool sleep_once(struct zovn_loop *loop) {
    uint64_t due_ns = zovn_switch_due(loop->vswitch, loop->part);
    if (due_ns != UINT64_MAX)
        due_ns -= loop->now_ns;
    loop->nap_ns = zovn_rest_ns(loop->polled, loop->nap_ns, due_ns);
    bool woken = zovn_nap_sleep(&loop->nap, loop->nap_ns);
    loop->overslept = !woken && loop->nap_ns == ZOVN_LONGEST_NAP_NS;
    return woken;
}

/* A peer that notified may not do so again before it is asked again. What it did may not be enough to
 * move a frame: a long one needs several receive buffers. */
void zovn_loop_rest(struct zovn_loop *loop) {
    if (loop->idle++ < zovn_rest_steps(loop->polled))
        return;
    if (!loop->asked || sleep_once(loop))
        ask_all(loop, true);
}

void zovn_loop_attach(struct zovn_loop *loop, uint32_t place,
                      const struct zovn_attachment *attachment) {
    loop->attached[place] = *attachment;
    loop->polled += !attachment->ask;
    ask(attachment, loop->asked);
    for (uint32_t i = 0; i < attachment->wake_count; i++)
        zovn_nap_watch(&loop->nap, attachment->wakes[i]);
}

void zovn_loop_detach(struct zovn_loop *loop, uint32_t place) {
    struct zovn_attachment *attached = &loop->attached[place];
    for (uint32_t i = 0; i < attached->wake_count; i++)
        zovn_nap_unwatch(&loop->nap, attached->wakes[i]);
    loop->polled -= !attached->ask;
    attached->port = NULL;
}

void zovn_loop_rewake(struct zovn_loop *loop, uint32_t place, uint32_t which, int file) {
    int *now = &loop->attached[place].wakes[which];
    zovn_nap_unwatch(&loop->nap, *now);
    *now = file;
    zovn_nap_watch(&loop->nap, file);
}
