/* Sleeps on epoll. */
#include "forward/nap.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BOUND_MS = 100 };

bool zovn_nap_open(struct zovn_nap *nap, int event) {
    struct epoll_event readable = {.events = EPOLLIN};
    *nap = (struct zovn_nap){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    return nap->epoll >= 0 && epoll_ctl(nap->epoll, EPOLL_CTL_ADD, event, &readable) == 0;
}

void zovn_nap_close(struct zovn_nap *nap) {
    close(nap->epoll);
}

/* Each write to an eventfd is an edge, whatever its counter is. */
void zovn_nap_watch(struct zovn_nap *nap, int file) {
    struct epoll_event edge = {.events = EPOLLIN | EPOLLET};
    if (file >= 0)
        epoll_ctl(nap->epoll, EPOLL_CTL_ADD, file, &edge);
}

void zovn_nap_unwatch(struct zovn_nap *nap, int file) {
    if (file >= 0)
        epoll_ctl(nap->epoll, EPOLL_CTL_DEL, file, NULL);
}

static bool woken(const struct zovn_nap *nap, int bound_ms) {
    struct epoll_event event;
    return epoll_wait(nap->epoll, &event, 1, bound_ms) != 0;
}

bool zovn_nap_sleep(struct zovn_nap *nap) {
    nap->count++;
    return woken(nap, BOUND_MS);
}

void zovn_nap_check(struct zovn_nap *nap) {
    nap->missed += !woken(nap, 0);
}
