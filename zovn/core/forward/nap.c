/* Sleeps on epoll. */
#include "forward/nap.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_EVENTS = 16, SECOND_NS = 1000000000 };

bool zovn_nap_open(struct zovn_nap *nap) {
    *nap = (struct zovn_nap){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    return nap->epoll >= 0;
}

void zovn_nap_close(struct zovn_nap *nap) {
    close(nap->epoll);
}

bool zovn_nap_hold(struct zovn_nap *nap, int event) {
    struct epoll_event readable = {.events = EPOLLIN, .data.fd = -1}; /* its owner reads it */
    return epoll_ctl(nap->epoll, EPOLL_CTL_ADD, event, &readable) == 0;
}

/* Each write to an eventfd is an edge, whatever its counter is. */
void zovn_nap_watch(struct zovn_nap *nap, int file) {
    struct epoll_event edge = {.events = EPOLLIN | EPOLLET, .data.fd = file};
    if (file >= 0)
        epoll_ctl(nap->epoll, EPOLL_CTL_ADD, file, &edge);
}

void zovn_nap_unwatch(struct zovn_nap *nap, int file) {
    if (file >= 0)
        epoll_ctl(nap->epoll, EPOLL_CTL_DEL, file, NULL);
}

/* What is left in an eventfd QEMU takes for work when this process is killed: it then drops the
 * frames that wait. A peer that has the same file may have emptied it: do not wait. */
static void empty(int file) {
    uint64_t writes;
    const struct iovec to = {.iov_base = &writes, .iov_len = sizeof writes};
    while (preadv2(file, &to, 1, -1, RWF_NOWAIT) < 0 && errno == EINTR) {
    }
}

static bool woken(const struct zovn_nap *nap, uint64_t bound_ns) {
    struct epoll_event events[MOST_EVENTS];
    const struct timespec bound = {(time_t)(bound_ns / SECOND_NS), (long)(bound_ns % SECOND_NS)};
    int count = epoll_pwait2(nap->epoll, events, MOST_EVENTS, &bound, NULL);
    for (int i = 0; i < count; i++)
        if (events[i].data.fd >= 0)
            empty(events[i].data.fd);
    return count != 0;
}

bool zovn_nap_sleep(struct zovn_nap *nap, uint64_t bound_ns) {
    nap->count++;
    return woken(nap, bound_ns);
}

void zovn_nap_check(struct zovn_nap *nap) {
    nap->missed += !woken(nap, 0);
}
