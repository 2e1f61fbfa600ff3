/* Short TCP flows: parallel sequences, each of one short connection after the other.
 *
 * A flow has ended when the sink has closed it, so that a sequence has only one flow at a time.
 * The paper's shorttcp sends 30 KB in each (section 2.3).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"

#define SEQUENCES_MAX 4096
#define EVENTS 64
#define CHUNK 65536

struct sequence {
    int fd;
    uint64_t left, begun_ns;
};

struct short_flows {
    int events;
    struct sockaddr_in here, there;
    uint64_t flow_bytes, flows, failed, bytes;
    struct samples flow_ns;
    char data[CHUNK];
};

static void write_flows(void *role) {
    struct short_flows *all = role;
    printf(",\"flows\":%" PRIu64 ",\"failed\":%" PRIu64, all->flows, all->failed);
    printf(",\"bytes\":%" PRIu64, all->bytes);
    samples_write(&all->flow_ns, "flow_ns");
}

static void watch(const struct short_flows *all, int change, struct sequence *one, uint32_t what) {
    struct epoll_event event = {.events = what, .data.ptr = one};
    if (epoll_ctl(all->events, change, one->fd, &event) != 0) {
        fail("epoll");
    }
}

static void begin(const struct short_flows *all, struct sequence *one) {
    one->fd = tcp_socket();
    one->left = all->flow_bytes;
    one->begun_ns = now_ns();
    set_nonblocking(one->fd);
    /* connect() chooses the port, and may take one in TIME_WAIT (ip(7)) */
    set_option(one->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (bind(one->fd, (const struct sockaddr *)&all->here, sizeof all->here) != 0) {
        fail("bind");
    }
    if (connect(one->fd, (const struct sockaddr *)&all->there, sizeof all->there) != 0 &&
        errno != EINPROGRESS) {
        fail("connect");
    }
    watch(all, EPOLL_CTL_ADD, one, EPOLLOUT);
}

static void begin_next(struct short_flows *all, struct sequence *one, bool whole) {
    all->flows += whole;
    all->failed += !whole;
    if (whole) {
        samples_add(&all->flow_ns, now_ns() - one->begun_ns);
    }
    close(one->fd);
    begin(all, one);
}

static void feed(struct short_flows *all, struct sequence *one) {
    while (one->left > 0) {
        ssize_t length = send(one->fd, all->data, one->left < CHUNK ? one->left : CHUNK, 0);
        if (length < 0 && errno == EAGAIN) {
            return;
        }
        if (length < 0) { /* refused, reset or timed out */
            begin_next(all, one, false);
            return;
        }
        one->left -= (uint64_t)length;
        all->bytes += (uint64_t)length;
    }
    shutdown(one->fd, SHUT_WR);
    watch(all, EPOLL_CTL_MOD, one, EPOLLIN);
}

static void step(struct short_flows *all, struct sequence *one) {
    if (one->left > 0) {
        feed(all, one);
        return;
    }
    char nothing[16];
    ssize_t length = recv(one->fd, nothing, sizeof nothing, 0);
    if (length == 0 || errno != EAGAIN) {
        begin_next(all, one, length == 0);
    }
}

static struct sequence *begin_all(struct short_flows *all, const struct options *options) {
    uint64_t count = option_number(options, "--sequences", 1);
    if (count < 1 || count > SEQUENCES_MAX || all->flow_bytes == 0) {
        errno = 0;
        fail("--sequences is not from 1 to %d, or --bytes is 0", SEQUENCES_MAX);
    }
    struct sequence *sequences = allocate(count, sizeof *sequences);
    for (uint64_t i = 0; i < count; i++) {
        begin(all, &sequences[i]);
    }
    return sequences;
}

static void run(struct short_flows *all) {
    struct epoll_event events[EVENTS];
    for (bool running = true; running;) {
        int count = epoll_wait(all->events, events, EVENTS, -1);
        if (count < 0) {
            fail("epoll");
        }
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == all) {
                running = obey(write_flows, all);
            } else {
                step(all, events[i].data.ptr);
            }
        }
    }
}

void send_short_flows(const struct options *options) {
    struct short_flows *all = allocate(1, sizeof *all);
    all->events = epoll_create1(EPOLL_CLOEXEC);
    all->here = option_end(options, "--bind", "0.0.0.0");
    all->here.sin_port = 0;
    all->there = option_end(options, "--to", NULL);
    all->flow_bytes = option_number(options, "--bytes", 30000);
    struct epoll_event orders = {.events = EPOLLIN, .data.ptr = all};
    if (epoll_ctl(all->events, EPOLL_CTL_ADD, STDIN_FILENO, &orders) != 0) {
        fail("epoll");
    }
    struct sequence *sequences = begin_all(all, options);
    say_ready();
    run(all);
    free(sequences);
    free(all);
}
