/* TCP streams: a source that fills its connections, and a sink that empties any number. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"

#define STREAMS_MAX 64
#define CHUNK 65536
#define DRAIN (1 << 20)
#define EVENTS 64

struct stream_source {
    size_t streams;
    struct pollfd polls[1 + STREAMS_MAX]; /* the orders, the streams */
    uint64_t bytes;
    char data[CHUNK];
};

static void write_source(void *role) {
    const struct stream_source *source = role;
    printf(",\"bytes\":%" PRIu64, source->bytes);
}

/* Return a connection with the pacing and congestion control of the options. */
static int connect_one(const struct options *options) {
    uint64_t bytes_per_s = option_number(options, "--rate", 0) / 8;
    int fd =
        tcp_connect(option_end(options, "--bind", "0.0.0.0"), option_end(options, "--to", NULL));
    if (bytes_per_s > 0 &&
        setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s) != 0) {
        fail("--rate");
    }
    set_congestion(fd, option_text(options, "--congestion", "cubic"));
    return fd;
}

static void connect_streams(struct stream_source *source, const struct options *options) {
    source->streams = option_number(options, "--streams", 1);
    if (source->streams < 1 || source->streams > STREAMS_MAX) {
        errno = 0;
        fail("--streams is not from 1 to %d", STREAMS_MAX);
    }
    for (size_t i = 1; i <= source->streams; i++) {
        source->polls[i] = (struct pollfd){.fd = connect_one(options), .events = POLLOUT};
    }
}

static void fill(struct stream_source *source, int fd) {
    ssize_t length = send(fd, source->data, CHUNK, 0);
    if (length < 0 && errno != EAGAIN) {
        fail("the sink is gone");
    }
    source->bytes += length > 0 ? (uint64_t)length : 0;
}

void send_stream(const struct options *options) {
    struct stream_source *source = allocate(1, sizeof *source);
    source->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    connect_streams(source, options);
    say_ready();
    do {
        for (size_t i = 1; i <= source->streams; i++) {
            if (source->polls[i].revents != 0) {
                fill(source, source->polls[i].fd);
            }
        }
        if (poll(source->polls, 1 + source->streams, -1) < 0) {
            fail("poll");
        }
    } while (source->polls[0].revents == 0 || obey(write_source, source));
    free(source);
}

struct connection {
    int fd;
    struct source *from;
};

struct stream_sink {
    int events, listener;
    struct sources sources; /* count: connections that the peer has closed */
};

static void write_sink(void *role) {
    const struct stream_sink *sink = role;
    sources_write(&sink->sources);
}

static void watch(const struct stream_sink *sink, int fd, void *tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
    if (epoll_ctl(sink->events, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("epoll");
    }
}

static void accept_all(struct stream_sink *sink) {
    for (;;) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        int fd =
            accept4(sink->listener, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED) {
            fail("accept");
        }
        if (fd < 0) {
            return;
        }
        struct connection *fresh = allocate(1, sizeof *fresh);
        *fresh = (struct connection){fd, source_of(&sink->sources, ntohl(peer.sin_addr.s_addr))};
        watch(sink, fd, fresh);
    }
}

static void drain(struct connection *connection) {
    /* MSG_TRUNC discards the data without copying it (tcp(7)). */
    ssize_t length = recv(connection->fd, NULL, DRAIN, MSG_TRUNC);
    if (length > 0) {
        connection->from->bytes += (uint64_t)length;
    } else if (length == 0 || errno != EAGAIN) {
        connection->from->count += length == 0;
        close(connection->fd);
        free(connection);
    }
}

/* Handle events; return false to end. */
static bool handle(struct stream_sink *sink, const struct epoll_event *event, int *orders) {
    if (event->data.ptr == orders) {
        return obey(write_sink, sink);
    }
    if (event->data.ptr == sink) {
        accept_all(sink);
    } else {
        drain(event->data.ptr);
    }
    return true;
}

void sink_streams(const struct options *options) {
    struct stream_sink *sink = allocate(1, sizeof *sink);
    struct epoll_event events[EVENTS];
    int orders = STDIN_FILENO;
    sink->events = epoll_create1(EPOLL_CLOEXEC);
    sink->listener = tcp_listen(option_end(options, "--bind", "0.0.0.0"));
    watch(sink, sink->listener, sink);
    watch(sink, orders, &orders);
    say_ready();
    for (bool running = true; running;) {
        int count = epoll_wait(sink->events, events, EVENTS, -1);
        if (count < 0) {
            fail("epoll");
        }
        for (int i = 0; running && i < count; i++) {
            running = handle(sink, &events[i], &orders);
        }
    }
    free(sink);
}
