/* UDP messages: a source, greedy or paced, and a sink that counts complete ones.
 *
 * A message above the MTU crosses the wire as fragments; the loss of one fragment
 * loses the whole message (section 2.2), so that the sink counts what an application gets.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"

#define BATCH 32
#define MESSAGE_MAX 65507
#define SHORTEST_TICK_NS 200000
#define LONGEST_LAG_NS 100000000
#define SINK_BUFFER (16 << 20)

struct message_source {
    int fd;
    uint64_t size, rate_bps; /* rate 0: greedy */
    uint64_t begun_ns, owed; /* pacing: owed messages are counted from here */
    uint64_t count;
    struct iovec data;
    struct mmsghdr batch[BATCH];
};

static void write_source(void *role) {
    const struct message_source *source = role;
    uint64_t bytes = source->count * source->size;
    printf(",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64, source->count, bytes);
}

/* Send at most this many; return how many the socket accepted. */
static uint64_t send_some(struct message_source *source, uint64_t most) {
    unsigned int length = most < BATCH ? (unsigned int)most : BATCH;
    int sent = sendmmsg(source->fd, source->batch, length, MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != ECONNREFUSED && errno != ENOBUFS) {
        fail("send");
    }
    source->count += sent > 0 ? (uint64_t)sent : 0;
    return sent > 0 ? (uint64_t)sent : 0;
}

/* Send what is due; return the ns until more is. After a long delay, the rest is dropped. */
static uint64_t send_due(struct message_source *source) {
    uint64_t interval_ns = source->size * 8 * NS_PER_S / source->rate_bps;
    uint64_t now = now_ns();
    uint64_t due = (now - source->begun_ns) / interval_ns + 1;
    if (due > source->owed + LONGEST_LAG_NS / interval_ns + 1) {
        source->begun_ns = now;
        source->owed = 0;
        due = 1;
    }
    while (source->owed < due) {
        uint64_t sent = send_some(source, due - source->owed);
        source->owed += sent;
        if (sent == 0) {
            break;
        }
    }
    uint64_t next = source->begun_ns + source->owed * interval_ns;
    now = now_ns();
    return next > now + SHORTEST_TICK_NS ? next - now : SHORTEST_TICK_NS;
}

static bool wait_paced(struct message_source *source, struct pollfd *orders) {
    uint64_t wait_ns = send_due(source);
    struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    if (ppoll(orders, 1, &wait, NULL) < 0) {
        fail("ppoll");
    }
    return orders->revents == 0 || obey(write_source, source);
}

static bool wait_greedy(struct message_source *source, struct pollfd *both) {
    if (poll(both, 2, -1) < 0) {
        fail("poll");
    }
    if (both[1].revents != 0) {
        send_some(source, BATCH);
    }
    return both[0].revents == 0 || obey(write_source, source);
}

static void prepare(struct message_source *source, const struct options *options) {
    struct sockaddr_in here = option_end(options, "--bind", "0.0.0.0");
    struct sockaddr_in there = option_end(options, "--to", NULL);
    here.sin_port = 0;
    source->size = option_number(options, "--size", 65000);
    source->rate_bps = option_number(options, "--rate", 0);
    if (source->size < 1 || source->size > MESSAGE_MAX) {
        errno = 0;
        fail("--size is not from 1 to %d", MESSAGE_MAX);
    }
    if (source->rate_bps > source->size * 8 * NS_PER_S) {
        errno = 0;
        fail("--rate is more than a message a nanosecond");
    }
    source->fd = udp_socket(here);
    set_option(source->fd, SOL_SOCKET, SO_SNDBUFFORCE,
               (int)option_number(options, "--buffer", 212992) /
                   2); /* the kernel doubles it (socket(7)) */
    if (connect(source->fd, (struct sockaddr *)&there, sizeof there) != 0) {
        fail("connect");
    }
    source->data = (struct iovec){allocate(1, source->size), source->size};
    for (size_t i = 0; i < BATCH; i++) {
        source->batch[i].msg_hdr = (struct msghdr){.msg_iov = &source->data, .msg_iovlen = 1};
    }
}

void send_messages(const struct options *options) {
    struct message_source *source = allocate(1, sizeof *source);
    prepare(source, options);
    struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = source->fd, .events = POLLOUT}};
    prctl(PR_SET_TIMERSLACK, 1);
    say_ready();
    source->begun_ns = now_ns();
    while (source->rate_bps > 0 ? wait_paced(source, polls) : wait_greedy(source, polls)) {
    }
    free(source->data.iov_base);
    free(source);
}

struct message_sink {
    int fd;
    struct sources sources;
    struct sockaddr_in peers[BATCH];
    char heads[BATCH][16];
    struct iovec data[BATCH];
    struct mmsghdr batch[BATCH];
};

/* Write the counts, and what the sink's own socket has dropped because it was full. */
static void write_sink(void *role) {
    const struct message_sink *sink = role;
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof memory;
    if (getsockopt(sink->fd, SOL_SOCKET, SO_MEMINFO, memory, &size) != 0) {
        fail("SO_MEMINFO");
    }
    sources_write(&sink->sources);
    printf(",\"overflows\":%" PRIu32, memory[SK_MEMINFO_DROPS]);
}

static void prepare_batch(struct message_sink *sink) {
    for (size_t i = 0; i < BATCH; i++) {
        sink->data[i] = (struct iovec){sink->heads[i], sizeof sink->heads[i]};
        sink->batch[i].msg_hdr = (struct msghdr){
            .msg_name = &sink->peers[i],
            .msg_namelen = sizeof sink->peers[i],
            .msg_iov = &sink->data[i],
            .msg_iovlen = 1,
        };
    }
}

static void take_batch(struct message_sink *sink) {
    /* MSG_TRUNC returns the whole length but copies only the head (recv(2)). */
    int count = recvmmsg(sink->fd, sink->batch, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
    if (count < 0 && errno != EAGAIN) {
        fail("receive");
    }
    for (int i = 0; i < count; i++) {
        uint32_t address = ntohl(sink->peers[i].sin_addr.s_addr);
        struct source *source = source_of(&sink->sources, address);
        source->bytes += sink->batch[i].msg_len;
        source->count++;
    }
}

void sink_messages(const struct options *options) {
    struct message_sink *sink = allocate(1, sizeof *sink);
    sink->fd = udp_socket(option_end(options, "--bind", "0.0.0.0"));
    set_option(sink->fd, SOL_SOCKET, SO_RCVBUFFORCE, SINK_BUFFER);
    prepare_batch(sink);
    struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = sink->fd, .events = POLLIN}};
    say_ready();
    do {
        if (poll(polls, 2, -1) < 0) {
            fail("poll");
        }
        take_batch(sink);
    } while (polls[0].revents == 0 || obey(write_sink, sink));
    free(sink);
}
