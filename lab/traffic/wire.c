/* A wire: passes frames between two interfaces, each way at a rate, late, from a finite buffer.
 *
 * The buffer stands for that of the port that sends: what finds it full is dropped. Its content
 * follows from the instant at which the line will be free. PFC frames (802.1Qbb) do not wait in it,
 * as a port sends them before its queues; they are counted by class.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pfc.h"
#include "roles.h"
#include "tagged.h"

#define FRAMES 8192
#define CONTROL_FRAMES 256
#define BATCH 64

struct frame {
    uint64_t due_ns;
    size_t length;
    char data[FRAME_MAX];
};

/* Frames in order of their departure, in a ring. */
struct queue {
    size_t places, first, waiting;
    struct frame *frames;
};

/* One direction of the wire. */
struct line {
    const char *from;
    int in, out;
    uint64_t came_ns; /* when its last frame did */
    uint64_t free_ns;
    struct queue data, control;
    uint64_t packets, bytes, dropped, refused, missed, latest_ns;
    uint64_t paused[CLASSES], resumed[CLASSES];
};

struct cable {
    uint64_t rate_bps, delay_ns, buffer_bytes;
    struct line lines[2];
    struct pollfd polls[3]; /* the orders, the ends */
};

static void write_cable(void *role) {
    struct cable *cable = role;
    printf(",\"lines\":{");
    for (size_t i = 0; i < 2; i++) {
        struct line *line = &cable->lines[i];
        line->missed += tagged_missed(line->in);
        printf("%s\"%s\":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"dropped\":%" PRIu64,
               i > 0 ? "," : "", line->from, line->packets, line->bytes, line->dropped);
        printf(",\"refused\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"latest_ns\":%" PRIu64,
               line->refused, line->missed, line->latest_ns);
        counts_write("paused", line->paused, CLASSES);
        counts_write("resumed", line->resumed, CLASSES);
        printf("}");
    }
    printf("}");
}

static struct queue new_queue(size_t places) {
    return (struct queue){.places = places, .frames = allocate(places, sizeof(struct frame))};
}

static void open_line(struct line *line, const char *from, int in, int out) {
    *line = (struct line){.from = from, .in = in, .out = out};
    line->data = new_queue(FRAMES);
    line->control = new_queue(CONTROL_FRAMES);
}

/* Count the classes that a PFC frame pauses (quanta above 0) and resumes (0). */
static void count_pfc(struct line *line, const struct pfc *pfc) {
    for (size_t i = 0; i < CLASSES; i++) {
        if (pfc->vector >> i & 1) {
            uint64_t *counts = pfc->quanta[i] > 0 ? line->paused : line->resumed;
            counts[i]++;
        }
    }
}

static void append(struct queue *queue, const char *data, size_t length, uint64_t due_ns) {
    struct frame *frame = &queue->frames[(queue->first + queue->waiting++) % queue->places];
    frame->due_ns = due_ns;
    frame->length = length;
    memcpy(frame->data, data, length);
}

static void enter_control(const struct cable *cable, struct line *line, const char *data,
                          size_t length, const struct pfc *pfc) {
    count_pfc(line, pfc);
    if (line->control.waiting == line->control.places) {
        line->dropped++;
        return;
    }
    uint64_t takes_ns = length * 8 * NS_PER_S / cable->rate_bps;
    append(&line->control, data, length, line->came_ns + takes_ns + cable->delay_ns);
}

static void enter_data(const struct cable *cable, struct line *line, const char *data,
                       size_t length) {
    uint64_t came_ns = line->came_ns;
    uint64_t free_ns = line->free_ns > came_ns ? line->free_ns : came_ns;
    /* in floating point: ns times bits/s would overflow */
    double bits = (double)(free_ns - came_ns) * (double)cable->rate_bps / (double)NS_PER_S;
    if (bits / 8.0 + (double)length > (double)cable->buffer_bytes ||
        line->data.waiting == line->data.places) {
        line->dropped++;
        return;
    }
    line->free_ns = free_ns + length * 8 * NS_PER_S / cable->rate_bps;
    append(&line->data, data, length, line->free_ns + cable->delay_ns);
}

static void enter(const struct cable *cable, struct line *line, const char *data, size_t length) {
    struct pfc pfc;
    if (length > FRAME_MAX) {
        line->dropped++;
    } else if (pfc_read(data, length, &pfc)) {
        enter_control(cable, line, data, length, &pfc);
    } else {
        enter_data(cable, line, data, length);
    }
}

/* Take some of the frames that have arrived, as at the instants when they did. */
static void take(const struct cable *cable, struct line *line) {
    struct tagged_room room;
    size_t length;
    uint64_t waited_ns;
    for (int i = 0; i < BATCH; i++) {
        const char *data = tagged_receive_late(line->in, &room, &length, &waited_ns);
        if (data == NULL) {
            return;
        }
        uint64_t came_ns = now_ns() - waited_ns;
        line->came_ns = came_ns > line->came_ns ? came_ns : line->came_ns;
        enter(cable, line, data, length);
    }
}

/* Send the frames of a queue that are due; return how long the next one waits. */
static uint64_t pass(struct line *line, struct queue *queue) {
    for (; queue->waiting > 0; queue->waiting--) {
        struct frame *frame = &queue->frames[queue->first];
        uint64_t now = now_ns();
        if (frame->due_ns > now) {
            return frame->due_ns - now;
        }
        uint64_t late_ns = now - frame->due_ns;
        line->latest_ns = late_ns > line->latest_ns ? late_ns : line->latest_ns;
        if (send(line->out, frame->data, frame->length, 0) == (ssize_t)frame->length) {
            line->packets++;
            line->bytes += frame->length;
        } else {
            line->refused++;
        }
        queue->first = (queue->first + 1) % queue->places;
    }
    return NS_PER_S;
}

static uint64_t pass_all(struct cable *cable) {
    uint64_t wait_ns = NS_PER_S;
    for (size_t i = 0; i < 2; i++) {
        struct line *line = &cable->lines[i];
        struct queue *queues[] = {&line->control, &line->data};
        for (size_t j = 0; j < 2; j++) {
            uint64_t next_ns = pass(line, queues[j]);
            wait_ns = next_ns < wait_ns ? next_ns : wait_ns;
        }
    }
    return wait_ns;
}

static void open_cable(struct cable *cable, const struct options *options) {
    cable->rate_bps = option_number(options, "--rate", 0);
    cable->delay_ns = option_number(options, "--delay-us", 0) * 1000;
    cable->buffer_bytes = option_number(options, "--buffer", 0);
    if (cable->rate_bps == 0 || cable->buffer_bytes == 0) {
        errno = 0;
        fail("--rate and --buffer are needed, above 0");
    }
    const char *left = option_needed(options, "--left"), *right = option_needed(options, "--right");
    int ends[] = {tagged_socket(left), tagged_socket(right)};
    open_line(&cable->lines[0], left, ends[0], ends[1]);
    open_line(&cable->lines[1], right, ends[1], ends[0]);
    cable->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    cable->polls[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    cable->polls[2] = (struct pollfd){.fd = ends[1], .events = POLLIN};
}

static void close_cable(struct cable *cable) {
    for (size_t i = 0; i < 2; i++) {
        free(cable->lines[i].data.frames);
        free(cable->lines[i].control.frames);
    }
    free(cable);
}

void wire(const struct options *options) {
    struct cable *cable = allocate(1, sizeof *cable);
    open_cable(cable, options);
    take_precedence();
    say_ready();
    do {
        uint64_t wait_ns = pass_all(cable);
        struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
        if (ppoll(cable->polls, 3, &wait, NULL) < 0) {
            fail("ppoll");
        }
        for (size_t i = 0; i < 2; i++) {
            if (cable->polls[1 + i].revents != 0) {
                take(cable, &cable->lines[i]);
            }
        }
    } while (cable->polls[0].revents == 0 || obey(write_cable, cable));
    close_cable(cable);
}
