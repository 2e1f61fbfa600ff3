/* A delay wire: passes frames between the two interfaces of each pair, all late by the same time.
 *
 * It stands in for netem, which many kernels lack. As all are equally late, one queue in order of
 * arrival holds them.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"

#define PAIRS_MAX 256
#define FRAME_MAX 1600
#define PLACES 16384

struct frame {
    uint64_t due_ns;
    int to;
    size_t length;
    char data[FRAME_MAX];
};

struct wire {
    uint64_t delay_ns;
    size_t sockets;
    struct pollfd polls[1 + 2 * PAIRS_MAX]; /* the orders; the pairs, one after the other */
    size_t first, waiting;                  /* of the frames, a ring */
    uint64_t packets, lost, latest_ns;
    struct frame frames[PLACES];
};

static void write_wire(void *role) {
    const struct wire *wire = role;
    printf(",\"packets\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"latest_ns\":%" PRIu64, wire->packets,
           wire->lost, wire->latest_ns);
}

/* Open the pairs of "A:B,C:D". */
static void open_pairs(struct wire *wire, const char *text) {
    char *copy = strdup(text), *rest = copy;
    for (char *end; (end = strsep(&rest, ":,")) != NULL;) {
        if (wire->sockets == 2 * PAIRS_MAX) {
            errno = 0;
            fail("--pairs has more than %d", PAIRS_MAX);
        }
        wire->polls[1 + wire->sockets++] =
            (struct pollfd){.fd = frame_socket(end), .events = POLLIN};
    }
    free(copy);
    if (wire->sockets % 2 != 0) {
        errno = 0;
        fail("--pairs %s: an interface has no other end", text);
    }
}

/* Take the frames that have arrived at an end. */
static void take(struct wire *wire, size_t end) {
    int other = wire->polls[1 + (end ^ 1U)].fd;
    for (;;) {
        struct frame *frame = &wire->frames[(wire->first + wire->waiting) % PLACES];
        char unwanted[FRAME_MAX];
        int full = wire->waiting == PLACES;
        ssize_t length = recv(wire->polls[1 + end].fd, full ? unwanted : frame->data, FRAME_MAX, 0);
        if (length <= 0) {
            return;
        }
        if (full) {
            wire->lost++;
            continue;
        }
        frame->due_ns = now_ns() + wire->delay_ns;
        frame->to = other;
        frame->length = (size_t)length;
        wire->waiting++;
    }
}

/* Send the frames that are due; return how long the next one waits. */
static uint64_t pass(struct wire *wire) {
    for (; wire->waiting > 0; wire->waiting--) {
        struct frame *frame = &wire->frames[wire->first];
        uint64_t now = now_ns();
        if (frame->due_ns > now) {
            return frame->due_ns - now;
        }
        uint64_t late_ns = now - frame->due_ns;
        wire->latest_ns = late_ns > wire->latest_ns ? late_ns : wire->latest_ns;
        if (send(frame->to, frame->data, frame->length, 0) == (ssize_t)frame->length) {
            wire->packets++;
        } else {
            wire->lost++;
        }
        wire->first = (wire->first + 1) % PLACES;
    }
    return NS_PER_S;
}

void delay(const struct options *options) {
    struct wire *wire = allocate(1, sizeof *wire);
    wire->delay_ns = option_number(options, "--delay-us", 0) * 1000;
    wire->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    open_pairs(wire, option_needed(options, "--pairs"));
    say_ready();
    do {
        uint64_t wait_ns = pass(wire);
        struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
        if (ppoll(wire->polls, 1 + wire->sockets, &wait, NULL) < 0) {
            fail("ppoll");
        }
        for (size_t end = 0; end < wire->sockets; end++) {
            if (wire->polls[1 + end].revents != 0) {
                take(wire, end);
            }
        }
    } while (wire->polls[0].revents == 0 || obey(write_wire, wire));
    free(wire);
}
