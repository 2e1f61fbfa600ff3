/* What the hostile guest does: mostly nearly right, so that it gets far; sometimes wild. */
#include "tools/ring_fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tools/random.h"

static uint64_t draw(struct hostile *guest, uint64_t below) {
    return zovn_draw(&guest->random, below);
}

static uint64_t wild(struct hostile *guest) {
    return draw(guest, UINT32_MAX) << 33 | draw(guest, UINT32_MAX);
}

static uint64_t address(struct hostile *guest) {
    static const uint64_t EDGES[] = {0, FUZZ_BUFFERS_AT - 1, UINT64_MAX, UINT64_MAX - 63};
    switch (draw(guest, 12)) {
    case 0:
        return EDGES[draw(guest, 4)];
    case 1:
        return wild(guest);
    case 2: /* near a region's end */
        return FUZZ_BUFFERS_AT + FUZZ_BUFFERS * FUZZ_BUFFER_BYTES - draw(guest, 200);
    case 3:
        return FUZZ_TABLES_AT + draw(guest, 2000);
    default:
        return FUZZ_BUFFERS_AT + draw(guest, FUZZ_BUFFERS) * FUZZ_BUFFER_BYTES;
    }
}

static uint32_t length(struct hostile *guest) {
    static const uint32_t EDGES[] = {0, 1, 11, 12, 13, 25, 26, 76, UINT32_MAX, 1u << 31};
    if (draw(guest, 5) == 0)
        return EDGES[draw(guest, 10)];
    return (uint32_t)(draw(guest, 8) ? 26 + draw(guest, 1600) : draw(guest, 80000));
}

static uint16_t flags(struct hostile *guest, uint16_t usual) {
    return (uint16_t)(draw(guest, 12) ? usual | (draw(guest, 3) ? 0 : ZOVN_NEXT)
                                      : draw(guest, 65536));
}

static struct zovn_descriptor descriptor(struct hostile *guest, uint16_t usual) {
    struct zovn_descriptor made = {address(guest), length(guest), flags(guest, usual), 0};
    made.next = (uint16_t)(draw(guest, 20) ? draw(guest, FUZZ_SIZE) : draw(guest, 65536));
    if (draw(guest, 6) == 0) {
        uint64_t entries = draw(guest, FUZZ_SIZE + 2);
        made.address = FUZZ_TABLES_AT + draw(guest, FUZZ_TABLES) * FUZZ_SIZE * sizeof made;
        made.length = (uint32_t)(entries * sizeof made + (draw(guest, 8) ? 0 : draw(guest, 16)));
        made.flags = ZOVN_INDIRECT;
    }
    return made;
}

/* As the device reads: each field as one, so that only the rings' protocol is tested. */
static void write_descriptor(struct zovn_descriptor *to, struct zovn_descriptor from) {
    ZOVN_WRITE_TO(to->address, from.address);
    ZOVN_WRITE_TO(to->length, from.length);
    ZOVN_WRITE_TO(to->flags, from.flags);
    ZOVN_WRITE_TO(to->next, from.next);
}

static void reclaim(struct hostile *guest, uint32_t ring) {
    uint16_t index = __atomic_load_n(&guest->used[ring]->index, __ATOMIC_ACQUIRE);
    for (; guest->seen[ring] != index; guest->seen[ring]++) {
        uint32_t head = ZOVN_READ(guest->used[ring]->ring[guest->seen[ring] % FUZZ_SIZE].id);
        guest->out[ring] &= ~(1u << head % FUZZ_SIZE);
    }
}

/* Mostly a head that the guest has, so that the port is not stopped too soon. */
static void offer(struct hostile *guest, uint32_t ring, uint16_t head) {
    struct zovn_avail *avail = guest->avail[ring];
    uint16_t index = ZOVN_READ(avail->index);
    reclaim(guest, ring);
    if (guest->out[ring] >> head & 1 && draw(guest, 2000))
        return;
    guest->out[ring] |= 1u << head;
    ZOVN_WRITE_TO(avail->ring[index % FUZZ_SIZE],
                  (uint16_t)(draw(guest, 5000) ? head : draw(guest, 65536)));
    uint64_t jump = draw(guest, 3000) ? 1 : draw(guest, 65536);
    __atomic_store_n(&avail->index, (uint16_t)(index + jump), __ATOMIC_RELEASE);
}

static void write_byte(uint8_t *to, uint64_t value) {
    __atomic_store_n(to, (uint8_t)value, __ATOMIC_RELAXED);
}

/* Mostly to an honest peer or to a guest, from one of few addresses. */
static void write_addresses(struct hostile *guest, uint8_t *bytes) {
    static const uint8_t KNOWN[] = {1, 1, 1, 0x77, 0x10, 0x11};
    for (uint32_t i = 0; i < 12; i++)
        write_byte(&bytes[i], i % 6 ? 0 : 2);
    write_byte(&bytes[5], KNOWN[draw(guest, 6)]);
    write_byte(&bytes[11], 0x10 + draw(guest, 3));
    if (draw(guest, 8) == 0)
        write_byte(&bytes[draw(guest, 12)], draw(guest, 256));
}

/* Mostly the value that is meant. */
static void write_nearly(struct hostile *guest, uint8_t *to, uint64_t value) {
    write_byte(to, draw(guest, 60) ? value : draw(guest, 256));
}

static void write_words(struct hostile *guest, uint8_t *to, const uint16_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        write_nearly(guest, to + 2 * i, words[i] & 0xff);
        write_nearly(guest, to + 2 * i + 1, words[i] >> 8);
    }
}

/* A TCP segment or UDP datagram that is left to be finished. */
static void write_packet(struct hostile *guest, uint8_t *bytes) {
    bool six = draw(guest, 2), udp = draw(guest, 2), tagged = draw(guest, 4) == 0;
    uint16_t at = tagged ? 18 : 14, start = (uint16_t)(at + (six ? 40 : 20));
    uint32_t segmented = udp ? 5 : (six ? 4u : 1u) | (draw(guest, 2) ? 0x80 : 0);
    uint32_t kind = draw(guest, 3) ? segmented : 0, size = 1 + (uint32_t)draw(guest, 700);
    const uint16_t header[] = {(uint16_t)(1 | kind << 8), 0, (uint16_t)size, start, udp ? 6 : 16};
    write_words(guest, bytes, header, sizeof header / sizeof *header);
    uint8_t *packet = bytes + 12 + at;
    write_nearly(guest, bytes + 24, 0x81);
    write_nearly(guest, bytes + 25, 0);
    write_nearly(guest, bytes + 26, 0);
    write_nearly(guest, bytes + 27, 1);
    for (uint32_t i = 0; i < 60; i++)
        write_byte(packet + i, draw(guest, 256));
    write_nearly(guest, packet - 2, six ? 0x86 : 8);
    write_nearly(guest, packet - 1, six ? 0xdd : 0);
    write_nearly(guest, packet, six ? 0x60 : 0x45);
    write_nearly(guest, packet + 6, six ? (udp ? 17 : 6) : 0x40);
    write_nearly(guest, packet + 7, 0);
    write_nearly(guest, packet + 9, udp ? 17 : 6);
    write_nearly(guest, bytes + 12 + start + 12, 0x50);
}

/* The network header, which is mostly zero, is followed by Ethernet's, and the begin of a packet. */
static void write_frame(struct hostile *guest) {
    static const uint8_t TYPES[][2] = {{0x81, 0}, {8, 0}, {0x86, 0xdd}, {0x88, 0xb5}};
    uint8_t *bytes = guest->buffers + draw(guest, FUZZ_BUFFERS) * FUZZ_BUFFER_BYTES;
    const uint8_t *type = TYPES[draw(guest, 4)];
    for (uint32_t i = 0; i < 12; i++)
        write_byte(&bytes[i], draw(guest, 40) ? 0 : draw(guest, 256));
    write_addresses(guest, bytes + 12);
    write_byte(&bytes[24], type[0]);
    write_byte(&bytes[25], type[1]);
    for (uint32_t i = 26; i < 46; i++)
        write_byte(&bytes[i], draw(guest, 256));
    if (draw(guest, 2))
        write_packet(guest, bytes);
}

static void write_plain(struct hostile *guest, uint8_t *bytes) {
    for (uint32_t i = 0; i < 12; i++) {
        write_byte(&bytes[i], 0);
        write_byte(&bytes[12 + i], i % 6 ? 0 : 2);
    }
    write_byte(&bytes[17], draw(guest, 8) ? 0x20 + !guest->number : 1);
    write_byte(&bytes[23], 0x20 + guest->number);
    write_byte(&bytes[24], 8);
    write_byte(&bytes[25], 0);
}

/* As most guests do: many short frames with one header, or as many buffers for them. */
static void act_plainly(struct hostile *guest, uint32_t ring) {
    for (uint64_t count = 1 + draw(guest, FUZZ_SIZE); count; count--) {
        uint16_t head = (uint16_t)draw(guest, FUZZ_SIZE);
        uint64_t offset = draw(guest, FUZZ_BUFFERS) * FUZZ_BUFFER_BYTES;
        uint32_t bytes = ring ? 2000 : 30 + (uint32_t)draw(guest, 100);
        reclaim(guest, ring);
        if (guest->out[ring] >> head & 1)
            continue;
        if (!ring)
            write_plain(guest, guest->buffers + offset);
        write_descriptor(
            &guest->descriptors[ring][head],
            (struct zovn_descriptor){FUZZ_BUFFERS_AT + offset, bytes, ring ? ZOVN_WRITE : 0, 0});
        offer(guest, ring, head);
    }
}

void hostile_act(struct hostile *guest) {
    uint32_t ring = (uint32_t)draw(guest, 2), which = (uint32_t)draw(guest, FUZZ_SIZE);
    switch (draw(guest, 8)) {
    case 0:
        write_frame(guest);
        break;
    case 1:
        which += (uint32_t)draw(guest, FUZZ_TABLES) * FUZZ_SIZE;
        write_descriptor(&guest->tables[which], descriptor(guest, draw(guest, 2) ? ZOVN_WRITE : 0));
        break;
    case 2:
    case 3:
        write_descriptor(&guest->descriptors[ring][which],
                         descriptor(guest, ring ? ZOVN_WRITE : 0));
        break;
    case 4:
    case 5:
        offer(guest, ring, (uint16_t)which);
        break;
    default:
        act_plainly(guest, ring);
    }
}

void hostile_begin(struct hostile *guest, uint32_t number, uint64_t seed) {
    *guest = (struct hostile){.random = seed | 1, .number = (uint8_t)number};
    for (uint32_t i = 0; i < 2; i++) {
        guest->descriptors[i] = calloc(FUZZ_SIZE, sizeof *guest->descriptors[i]);
        guest->avail[i] = calloc(1, sizeof *guest->avail[i] + 2 * (FUZZ_SIZE + 1));
        guest->used[i] = calloc(1, sizeof *guest->used[i] + 8 * FUZZ_SIZE + 2);
    }
    guest->tables = calloc(FUZZ_TABLES * FUZZ_SIZE, sizeof *guest->tables);
    guest->buffers = calloc(FUZZ_BUFFERS, FUZZ_BUFFER_BYTES);
    guest->memory.count = 2;
    guest->memory.regions[0] =
        (struct zovn_region){FUZZ_BUFFERS_AT, FUZZ_BUFFERS * FUZZ_BUFFER_BYTES, guest->buffers};
    guest->memory.regions[1] = (struct zovn_region){
        FUZZ_TABLES_AT, FUZZ_TABLES * FUZZ_SIZE * sizeof *guest->tables, (uint8_t *)guest->tables};
    for (uint32_t i = 0; i < 200; i++)
        hostile_act(guest);
}

void hostile_end(struct hostile *guest) {
    for (uint32_t i = 0; i < 2; i++) {
        free(guest->descriptors[i]);
        free(guest->avail[i]);
        free(guest->used[i]);
    }
    free(guest->tables);
    free(guest->buffers);
}

static struct zovn_split_ring ring_of(struct hostile *guest, uint32_t which) {
    return (struct zovn_split_ring){
        .descriptors = guest->descriptors[which],
        .avail = guest->avail[which],
        .used = guest->used[which],
        .memory = &guest->memory,
        .size = FUZZ_SIZE,
        .event_index = draw(guest, 2),
        .indirect = draw(guest, 4) > 0,
    };
}

struct zovn_port *hostile_port(struct hostile *guest) {
    struct zovn_ring_settings settings = {
        .transmit = ring_of(guest, 0),
        .receive = ring_of(guest, 1),
        .mergeable = draw(guest, 2),
        .version_1 = true,
        .sends = (uint32_t)(draw(guest, 2) ? 63 : draw(guest, 64)),
        .takes = (uint32_t)draw(guest, 64),
    };
    settings.heads = 2 * FUZZ_SIZE;
    struct zovn_port *port = zovn_ring_port_new(&settings);
    if (draw(guest, 2)) /* a second pair in the same places: one ring is the other's, too */
        zovn_ring_port_add(port, &(struct zovn_ring_pair){ring_of(guest, 0), ring_of(guest, 1)});
    return port;
}
