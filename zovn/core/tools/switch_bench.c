/* The cost of a frame in the switch alone: guests' rings in this process, and no guests.
 *
 * Usage: zovn-bench PORTS BYTES SECONDS. All ports send to all others, as fast as they can. Only the
 * step is timed; what a guest would do to its rings between two steps is not. Prints JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ports/ring_port.h"
#include "switch/switch.h"

enum { SIZE = 256, BUFFER_BYTES = 2048, HEADER = 12, WARM_UP = 200 };

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
static void begin_queue(struct queue *queue, uint64_t at, uint32_t length, uint16_t flags) {
    queue->descriptors = room(SIZE * sizeof *queue->descriptors);
    queue->avail = room(sizeof *queue->avail + 2 * (SIZE + 1));
    queue->used = room(sizeof *queue->used + 8 * SIZE + 2);
    for (uint16_t i = 0; i < SIZE; i++) {
        queue->descriptors[i] =
            (struct zovn_descriptor){at + (uint64_t)i * BUFFER_BYTES, length, flags, 0};
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

static void write_frame(uint8_t *buffer, uint32_t from, uint32_t to) {
    uint8_t *frame = buffer + HEADER;
    frame[0] = frame[6] = 2;
    frame[5] = (uint8_t)to;
    frame[11] = (uint8_t)from;
    frame[12] = 0x88;
    frame[13] = 0xb5;
}

static struct zovn_split_ring ring_of(const struct guest *guest, const struct queue *queue) {
    return (struct zovn_split_ring){.descriptors = queue->descriptors,
                                    .avail = queue->avail,
                                    .used = queue->used,
                                    .memory = &guest->memory,
                                    .size = SIZE};
}

static struct zovn_port *begin_guest(struct guest *guest, uint32_t self, uint32_t ports,
                                     uint32_t bytes) {
    size_t half = (size_t)SIZE * BUFFER_BYTES;
    guest->buffers = room(2 * half);
    guest->memory.count = 1;
    guest->memory.regions[0] = (struct zovn_region){0, 2 * half, guest->buffers};
    begin_queue(&guest->transmit, 0, HEADER + bytes, 0);
    begin_queue(&guest->receive, half, BUFFER_BYTES, ZOVN_WRITE);
    for (uint32_t i = 0; i < SIZE; i++)
        write_frame(guest->buffers + (size_t)i * BUFFER_BYTES, self,
                    (self + 1 + i % (ports - 1)) % ports);
    struct zovn_ring_settings settings = {.transmit = ring_of(guest, &guest->transmit),
                                          .receive = ring_of(guest, &guest->receive),
                                          .mergeable = true,
                                          .version_1 = true};
    return zovn_ring_port_new(&settings);
}

static struct zovn_switch *begin(struct guest *guests, uint32_t ports, uint32_t bytes) {
    struct zovn_settings settings;
    zovn_settings_default(&settings);
    const char *problem;
    struct zovn_switch *vswitch = zovn_switch_new(&settings, &problem);
    struct zovn_port_settings access = {.vlan = 1};
    for (uint32_t i = 0; vswitch && i < ports; i++) {
        uint8_t address[6] = {2, 0, 0, 0, 0, (uint8_t)i};
        struct zovn_port *port = begin_guest(&guests[i], i, ports, bytes);
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

static uint64_t delivered(const struct zovn_switch *vswitch, uint32_t ports) {
    struct zovn_counters counters;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ports && zovn_switch_counters(vswitch, i, &counters); i++)
        sum += counters.delivered;
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

int main(int argc, char **argv) {
    uint32_t ports = argc == 4 ? (uint32_t)atoi(argv[1]) : 0;
    uint32_t bytes = argc == 4 ? (uint32_t)atoi(argv[2]) : 0;
    if (ports < 2 || ports > ZOVN_MOST_PORTS || bytes < 60 || bytes > BUFFER_BYTES - HEADER) {
        fputs("usage: zovn-bench PORTS BYTES SECONDS, with 2 to 72 ports, 60 to 2036 bytes\n",
              stderr);
        return 2;
    }
    struct guest *guests = room(ports * sizeof *guests);
    struct zovn_switch *vswitch = begin(guests, ports, bytes);
    for (uint32_t i = 0; i < WARM_UP; i++)
        step_ns(vswitch, guests, ports);
    uint64_t before = delivered(vswitch, ports);
    double took = 0, end = now_ns() + atof(argv[3]) * 1e9;
    while (now_ns() < end)
        took += step_ns(vswitch, guests, ports);
    uint64_t frames = delivered(vswitch, ports) - before;
    printf("{\"frames\": %" PRIu64 ", \"busy_ns\": %.0f}\n", frames, took);
    return 0;
}
