/* Frames with a number, by sender and receiver. */
#include "tools/endless_port.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/random.h"

enum { HEADS = 32, HEADER = 10, FRAME = 64, NUMBER_AT = 20, FLOODS = 16, FULL = 8, TURNS = 4 };

struct endless {
    struct zovn_port port;
    uint64_t random;
    uint32_t station;
    uint8_t to; /* the station that it sends to now */
    uint16_t unused[HEADS]; /* a stack */
    uint32_t unused_count;
    uint8_t frames[HEADS][HEADER + FRAME]; /* of which the sender says nothing: the header is 0 */
    uint64_t seen[ENDLESS_STATIONS]; /* the last number of each sender */
};

static atomic_uint_fast64_t received;

/* Numbers go on when a station comes again. */
static atomic_uint_fast64_t numbers[ENDLESS_STATIONS];

static struct endless *of(struct zovn_port *port) {
    return (struct endless *)port;
}

static void make(struct endless *endless, uint8_t *frame) {
    const uint8_t header[] = {2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x88, 0xb5};
    memcpy(frame, header, sizeof header);
    if (!zovn_draw(&endless->random, TURNS))
        endless->to = (uint8_t)zovn_draw(&endless->random, ENDLESS_STATIONS);
    frame[5] = endless->to;
    frame[11] = (uint8_t)endless->station;
    if (!zovn_draw(&endless->random, FLOODS))
        memset(frame, 0xff, 6);
    uint64_t number = ++numbers[endless->station];
    memcpy(frame + NUMBER_AT, &number, sizeof number);
}

static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct endless *endless = of(port);
    uint32_t count = 0;
    while (count < most && endless->unused_count) {
        heads[count] = endless->unused[--endless->unused_count];
        make(endless, endless->frames[heads[count++]] + HEADER);
    }
    return count;
}

/* In two pieces, so that the switch looks for them again. */
static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    uint8_t *bytes = of(port)->frames[head] + HEADER;
    zovn_frame_begin(frame);
    zovn_frame_append(frame, bytes, FRAME / 2);
    zovn_frame_append(frame, bytes + FRAME / 2, FRAME / 2);
    return ZOVN_FRAME_OK;
}

/* In one piece, if the switch has seen their header before. */
static void find_wholes(struct zovn_port *port, const uint16_t *heads, uint32_t count,
                        struct zovn_segment *wholes) {
    for (uint32_t i = 0; i < count; i++)
        wholes[i] = (struct zovn_segment){of(port)->frames[heads[i]] + HEADER, FRAME};
}

static bool is_full(struct endless *endless) {
    return !zovn_draw(&endless->random, FULL);
}

static void receive(struct endless *endless, const uint8_t *bytes) {
    uint64_t number;
    memcpy(&number, bytes + NUMBER_AT, sizeof number);
    if (number <= endless->seen[bytes[11]]) {
        fputs("zovn-forward-races: a frame is repeated or overtaken\n", stderr);
        exit(1);
    }
    endless->seen[bytes[11]] = number;
    atomic_fetch_add(&received, 1);
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    uint8_t bytes[FRAME];
    if (is_full(of(port)))
        return ZOVN_PUT_NO_ROOM;
    zovn_frame_copy(frame, &(struct zovn_segment){bytes, sizeof bytes});
    receive(of(port), bytes);
    return ZOVN_PUT_DONE;
}

static uint32_t put_plain(struct zovn_port *port, const struct zovn_plain *frames, uint32_t count) {
    uint8_t bytes[FRAME];
    uint32_t done = 0;
    for (; done < count && !is_full(of(port)); done++) {
        memcpy(bytes, frames[done].bytes, sizeof bytes);
        memcpy(bytes, frames[done].header, ZOVN_HEADER);
        receive(of(port), bytes);
    }
    return done;
}

static bool plain_room(struct zovn_port *port, uint32_t length) {
    (void)port;
    return length == FRAME;
}

static bool room(struct zovn_port *port) {
    (void)port;
    return true;
}

static void complete(struct zovn_port *port, uint16_t head) {
    struct endless *endless = of(port);
    memset(endless->frames[head], 0, sizeof endless->frames[head]);
    endless->unused[endless->unused_count++] = head;
}

static void publish(struct zovn_port *port) {
    (void)port;
}

static void free_port(struct zovn_port *port) {
    free(port);
}

static const struct zovn_port_calls CALLS = {peek, frame, put, room, complete, publish, free_port};

struct zovn_port *endless_port_new(uint32_t station) {
    struct endless *endless = calloc(1, sizeof *endless);
    if (!endless)
        return NULL;
    endless->port = (struct zovn_port){.calls = &CALLS,
                                       .heads = HEADS,
                                       .find_wholes = find_wholes,
                                       .header_bytes = HEADER,
                                       .put_plain = put_plain,
                                       .plain_room = plain_room};
    endless->random = station * UINT64_C(0x9e3779b97f4a7c15) + 1;
    endless->station = station;
    while (endless->unused_count < HEADS)
        complete(&endless->port, (uint16_t)endless->unused_count);
    return &endless->port;
}

uint64_t endless_received(void) {
    return atomic_load(&received);
}
