/* Split virtqueues whose buffers are available again as soon as they came back. */
#include "tools/bench_guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 256, TCP_AT = 34 };

void *bench_room(size_t bytes) {
    void *made = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!made) {
        fputs("zovn-bench: no memory\n", stderr);
        exit(1);
    }
    return memset(made, 0, bytes);
}

/* Make all descriptors available. The guest's addresses are offsets into its buffers. */
static void begin_queue(struct bench_queue *queue, uint64_t at, uint32_t stride, uint32_t length,
                        uint16_t flags) {
    queue->descriptors = bench_room(SIZE * sizeof *queue->descriptors);
    queue->avail = bench_room(sizeof *queue->avail + 2 * (SIZE + 1));
    queue->used = bench_room(sizeof *queue->used + 8 * SIZE + 2);
    for (uint16_t i = 0; i < SIZE; i++) {
        queue->descriptors[i] =
            (struct zovn_descriptor){at + (uint64_t)i * stride, length, flags, 0};
        queue->avail->ring[i] = i;
    }
    queue->avail->index = SIZE;
    queue->avail->flags = ZOVN_NO_INTERRUPT;
}

/* What came back becomes available again. */
static void refill(struct bench_queue *queue) {
    for (; queue->seen != queue->used->index; queue->seen++) {
        uint32_t id = queue->used->ring[queue->seen % SIZE].id;
        queue->avail->ring[queue->avail->index % SIZE] = (uint16_t)id;
        __atomic_store_n(&queue->avail->index, (uint16_t)(queue->avail->index + 1),
                         __ATOMIC_RELEASE);
    }
}

/* What a sender says of a TCP segment, or of several in one frame, and the headers that it needs. */
static void leave(uint8_t *buffer, enum left left) {
    uint8_t *packet = buffer + BENCH_HEADER + 14;
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
    uint8_t *frame = buffer + BENCH_HEADER;
    frame[0] = frame[6] = 2;
    frame[5] = (uint8_t)to;
    frame[11] = (uint8_t)from;
    frame[12] = 0x88;
    frame[13] = 0xb5;
    if (left != NOTHING)
        leave(buffer, left);
}

static struct zovn_split_ring ring_of(const struct bench_guest *guest,
                                      const struct bench_queue *queue) {
    return (struct zovn_split_ring){.descriptors = queue->descriptors,
                                    .avail = queue->avail,
                                    .used = queue->used,
                                    .memory = &guest->memory,
                                    .size = SIZE};
}

struct zovn_port *bench_guest_port(struct bench_guest *guest, uint32_t self, uint32_t ports,
                                   uint32_t bytes, enum left left) {
    uint32_t length = BENCH_HEADER + bytes;
    uint32_t stride = length < BENCH_BUFFER_BYTES ? BENCH_BUFFER_BYTES : (length + 63) / 64 * 64;
    uint64_t sent = (uint64_t)SIZE * stride, all = sent + SIZE * BENCH_BUFFER_BYTES;
    guest->buffers = bench_room(all);
    guest->memory.count = 1;
    guest->memory.regions[0] = (struct zovn_region){0, all, guest->buffers};
    begin_queue(&guest->transmit, 0, stride, length, 0);
    begin_queue(&guest->receive, sent, BENCH_BUFFER_BYTES, BENCH_BUFFER_BYTES, ZOVN_WRITE);
    for (uint32_t i = 0; i < SIZE; i++)
        write_frame(guest->buffers + (size_t)i * stride, self, (self + 1 + i % (ports - 1)) % ports,
                    left);
    struct zovn_ring_settings settings = {.transmit = ring_of(guest, &guest->transmit),
                                          .receive = ring_of(guest, &guest->receive),
                                          .mergeable = true,
                                          .version_1 = true,
                                          .sends = ZOVN_CHECKSUM | ZOVN_TCP4,
                                          .takes = left == WHOLE ? ZOVN_CHECKSUM | ZOVN_TCP4 : 0};
    return zovn_ring_port_new(&settings);
}

void bench_guest_refill(struct bench_guest *guest) {
    refill(&guest->transmit);
    refill(&guest->receive);
}
