/* Frames with a number, by sender and receiver. */
#include "tools/endless_port.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/random.h"

enum { HEADS = 32, FRAME = 64, NUMBER_AT = 20, FLOODS = 16, FULL = 8 };

struct endless {
    struct zovn_port port;
    uint64_t random;
    uint32_t station;
    uint16_t unused[HEADS]; /* a stack */
    uint32_t unused_count;
    uint8_t frames[HEADS][FRAME];
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
    frame[5] = (uint8_t)zovn_draw(&endless->random, ENDLESS_STATIONS);
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
        make(endless, endless->frames[heads[count++]]);
    }
    return count;
}

/* In two pieces, so that the switch looks for them again. */
static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    uint8_t *bytes = of(port)->frames[head];
    zovn_frame_begin(frame);
    zovn_frame_append(frame, bytes, FRAME / 2);
    zovn_frame_append(frame, bytes + FRAME / 2, FRAME / 2);
    return ZOVN_FRAME_OK;
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    struct endless *endless = of(port);
    uint8_t bytes[FRAME];
    uint64_t number;
    if (!zovn_draw(&endless->random, FULL))
        return ZOVN_PUT_NO_ROOM;
    zovn_frame_copy(frame, &(struct zovn_segment){bytes, sizeof bytes});
    memcpy(&number, bytes + NUMBER_AT, sizeof number);
    if (number <= endless->seen[bytes[11]]) {
        fputs("zovn-forward-races: a frame is repeated or overtaken\n", stderr);
        exit(1);
    }
    endless->seen[bytes[11]] = number;
    atomic_fetch_add(&received, 1);
    return ZOVN_PUT_DONE;
}

static bool room(struct zovn_port *port) {
    (void)port;
    return true;
}

static void complete(struct zovn_port *port, uint16_t head) {
    struct endless *endless = of(port);
    memset(endless->frames[head], 0, FRAME);
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
    endless->port = (struct zovn_port){.calls = &CALLS, .heads = HEADS};
    endless->random = station * UINT64_C(0x9e3779b97f4a7c15) + 1;
    endless->station = station;
    while (endless->unused_count < HEADS)
        complete(&endless->port, (uint16_t)endless->unused_count);
    return &endless->port;
}

uint64_t endless_received(void) {
    return atomic_load(&received);
}
