/* The cost of a frame in the switch alone: guests' rings in this process, and no guests.
 *
 * Usage: zovn-bench PORTS BYTES SECONDS [LEFT]. All ports send to all others, as fast as they can. Only
 * the step is timed; what a guest would do to its rings between two steps is not. Prints JSON.
 * LEFT is what senders leave to others: `checksum`, or `segments` of 1,448 bytes, which the switch
 * finishes; or `whole`, the same for receivers that take it. Frames are TCP's then. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ports/ring_port.h"
#include "switch/switch.h"

enum { SIZE = 256, BUFFER_BYTES = 2048, HEADER = 12, WARM_UP = 200 };
enum { MOST_BYTES = 60000, PLAIN_BYTES = BUFFER_BYTES - HEADER, TCP_AT = 34 };

enum left { NOTHING, CHECKSUMS, SEGMENTS, WHOLE };

struct options {
    uint32_t ports, bytes;
    double seconds;
    enum left left;
};

/* One of a guest's rings, as its driver knows it. */
struct queue {
    struct zovn_descriptor *descriptors;
    struct zovn_avail *avail;
    struct zovn_used *used;
    uint16_t seen;
};

struct guest {
    struct queue transmit, receive;
    struct zovn_memory memory;
    uint8_t *buffers; /* of the transmit ring, then of the receive ring */
};

static void *room(size_t bytes) {
    void *made = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!made) {
        fputs("zovn-bench: no memory\n", stderr);
        exit(1);
    }
    return memset(made, 0, bytes);
}

/* Make all descriptors available. The guest's addresses are offsets into its buffers. */
static void begin_queue(struct queue *queue, uint64_t at, uint32_t stride, uint32_t length,
                        uint16_t flags) {
    queue->descriptors = room(SIZE * sizeof *queue->descriptors);
    queue->avail = room(sizeof *queue->avail + 2 * (SIZE + 1));
    queue->used = room(sizeof *queue->used + 8 * SIZE + 2);
    for (uint16_t i = 0; i < SIZE; i++) {
        queue->descriptors[i] =
            (struct zovn_descriptor){at + (uint64_t)i * stride, length, flags, 0};
        queue->avail->ring[i] = i;
    }
    queue->avail->index = SIZE;
    queue->avail->flags = ZOVN_NO_INTERRUPT;
}

/* What came back becomes available again. */
static void refill(struct queue *queue) {
    for (; queue->seen != queue->used->index; queue->seen++) {
        uint32_t id = queue->used->ring[queue->seen % SIZE].id;
        queue->avail->ring[queue->avail->index % SIZE] = (uint16_t)id;
        __atomic_store_n(&queue->avail->index, (uint16_t)(queue->avail->index + 1),
                         __ATOMIC_RELEASE);
    }
}

/* What a sender says of a TCP segment, or of several in one frame, and the headers that it needs. */
static void leave(uint8_t *buffer, enum left left) {
    uint8_t *packet = buffer + HEADER + 14;
    struct zovn_offload said = {.flags = 1, .checksum_start = TCP_AT, .checksum_offset = 16};
    if (left != CHECKSUMS) {
        said.kind = 1;
        said.segment_bytes = 1448;
    }
    memcpy(buffer, &said, sizeof said);
    packet[-2] = 8;
    packet[-1] = 0;
    packet[0] = 0x45;
    packet[9] = 6;
    packet[20 + 12] = 0x50;
}

static void write_frame(uint8_t *buffer, uint32_t from, uint32_t to, enum left left) {
    uint8_t *frame = buffer + HEADER;
    frame[0] = frame[6] = 2;
    frame[5] = (uint8_t)to;
    frame[11] = (uint8_t)from;
    frame[12] = 0x88;
    frame[13] = 0xb5;
    if (left != NOTHING)
        leave(buffer, left);
}

static struct zovn_split_ring ring_of(const struct guest *guest, const struct queue *queue) {
    return (struct zovn_split_ring){.descriptors = queue->descriptors,
                                    .avail = queue->avail,
                                    .used = queue->used,
                                    .memory = &guest->memory,
                                    .size = SIZE};
}

static struct zovn_port *begin_guest(struct guest *guest, uint32_t self,
                                     const struct options *options) {
    uint32_t length = HEADER + options->bytes;
    uint32_t stride = length < BUFFER_BYTES ? BUFFER_BYTES : (length + 63) / 64 * 64;
    uint64_t sent = (uint64_t)SIZE * stride, all = sent + SIZE * BUFFER_BYTES;
    guest->buffers = room(all);
    guest->memory.count = 1;
    guest->memory.regions[0] = (struct zovn_region){0, all, guest->buffers};
    begin_queue(&guest->transmit, 0, stride, length, 0);
    begin_queue(&guest->receive, sent, BUFFER_BYTES, BUFFER_BYTES, ZOVN_WRITE);
    for (uint32_t i = 0; i < SIZE; i++)
        write_frame(guest->buffers + (size_t)i * stride, self,
                    (self + 1 + i % (options->ports - 1)) % options->ports, options->left);
    struct zovn_ring_settings settings = {
        .transmit = ring_of(guest, &guest->transmit),
        .receive = ring_of(guest, &guest->receive),
        .mergeable = true,
        .version_1 = true,
        .sends = ZOVN_CHECKSUM | ZOVN_TCP4,
        .takes = options->left == WHOLE ? ZOVN_CHECKSUM | ZOVN_TCP4 : 0};
    return zovn_ring_port_new(&settings);
}

static struct zovn_switch *begin(struct guest *guests, const struct options *options) {
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    const char *problem;
    struct zovn_switch *vswitch = zovn_switch_new(&settings, &problem);
    struct zovn_port_settings access = {.vlan = 1};
    for (uint32_t i = 0; vswitch && i < options->ports; i++) {
        uint8_t address[6] = {2, 0, 0, 0, 0, (uint8_t)i};
        struct zovn_port *port = begin_guest(&guests[i], i, options);
        zovn_switch_add(vswitch, port, &access, &problem);
        zovn_switch_fix(vswitch, i, 1, address);
    }
    return vswitch;
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Frames that went out: a sender's frame may be several. */
static uint64_t out_of(const struct zovn_switch *vswitch, uint32_t ports) {
    struct zovn_counters counters;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ports && zovn_switch_counters(vswitch, i, &counters); i++)
        sum += counters.out;
    return sum;
}

/* Return how long one step took. */
static double step_ns(struct zovn_switch *vswitch, struct guest *guests, uint32_t ports) {
    double begun = now_ns();
    zovn_switch_step(vswitch, (uint64_t)begun);
    double took = now_ns() - begun;
    for (uint32_t i = 0; i < ports; i++) {
        refill(&guests[i].transmit);
        refill(&guests[i].receive);
    }
    return took;
}

static bool read_left(const char *word, enum left *left) {
    static const char *const WORDS[] = {"nothing", "checksum", "segments", "whole"};
    for (uint32_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(word, WORDS[i]) == 0) {
            *left = (enum left)i;
            return true;
        }
    return false;
}

static bool read_options(int argc, char **argv, struct options *options) {
    if (argc < 4 || argc > 5 || (argc == 5 && !read_left(argv[4], &options->left)))
        return false;
    options->ports = (uint32_t)atoi(argv[1]);
    options->bytes = (uint32_t)atoi(argv[2]);
    options->seconds = atof(argv[3]);
    uint32_t most = options->left < SEGMENTS ? PLAIN_BYTES : MOST_BYTES;
    return options->ports >= 2 && options->ports <= ZOVN_MOST_PORTS && options->bytes >= 60 &&
           options->bytes <= most;
}

int main(int argc, char **argv) {
    struct options options = {0};
    if (!read_options(argc, argv, &options)) {
        fputs(
            "usage: zovn-bench PORTS BYTES SECONDS [nothing|checksum|segments|whole], with 2 to 72 "
            "ports, 60 to 2036 bytes, or to 60000 for segments\n",
            stderr);
        return 2;
    }
    struct guest *guests = room(options.ports * sizeof *guests);
    struct zovn_switch *vswitch = begin(guests, &options);
    for (uint32_t i = 0; i < WARM_UP; i++)
        step_ns(vswitch, guests, options.ports);
    uint64_t before = out_of(vswitch, options.ports);
    double took = 0, end = now_ns() + options.seconds * 1e9;
    while (now_ns() < end)
        took += step_ns(vswitch, guests, options.ports);
    uint64_t frames = out_of(vswitch, options.ports) - before;
    printf("{\"frames\": %" PRIu64 ", \"busy_ns\": %.0f}\n", frames, took);
    return 0;
}
