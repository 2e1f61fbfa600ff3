/* Asks all peers to notify, looks once more, then sleeps. */
#include "forward/nap.h"

#include <sys/epoll.h>

enum { BOUND_MS = 100 };

/* By edges: each write to an eventfd is one, so it need not be read. A read could wait forever, since
 * the peer has the same file and may empty it first. A file that cannot be watched never wakes: then
 * the bound of a sleep does. */
void zovn_nap_watch(const struct zovn_forwarder *forwarder, int file) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    if (file >= 0)
        epoll_ctl(forwarder->epoll, EPOLL_CTL_ADD, file, &event);
}

void zovn_nap_unwatch(const struct zovn_forwarder *forwarder, int file) {
    if (file >= 0)
        epoll_ctl(forwarder->epoll, EPOLL_CTL_DEL, file, NULL);
}

static void ask_all(struct zovn_forwarder *forwarder, bool notify) {
    for (uint32_t i = 0; i < ZOVN_MOST_PORTS; i++)
        if (forwarder->attached[i].port)
            forwarder->attached[i].ask(forwarder->attached[i].port, notify);
}

static bool woken(const struct zovn_forwarder *forwarder, int bound_ms) {
    struct epoll_event event;
    return epoll_wait(forwarder->epoll, &event, 1, bound_ms) != 0;
}

/* What came before the peers were asked is found by the step after it. */
void zovn_nap(struct zovn_forwarder *forwarder) {
    ask_all(forwarder, true);
    if (!zovn_forwarder_step(forwarder)) {
        forwarder->naps++;
        if (!woken(forwarder, BOUND_MS) && zovn_forwarder_step(forwarder))
            forwarder->missed += !woken(forwarder, 0);
    }
    ask_all(forwarder, false);
}
