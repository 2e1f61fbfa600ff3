/* Rings of frames in this process; each frame has a buffer that grows to its length. */
#include "ports/memory_port.h"

#include <stdlib.h>
#include <string.h>

struct buffer {
    uint8_t *bytes;
    uint32_t room;
    uint32_t length;
    struct zovn_offload offload;
};

struct memory_port {
    struct zovn_port port;
    struct buffer *sent; /* by head */
    uint16_t *unused;    /* heads that the peer may use: a stack */
    uint16_t *given;     /* heads that are completed, but not published */
    uint16_t *order;     /* heads in the order of sending: a ring */
    uint32_t unused_count, given_count;
    uint32_t posted, peeked;
    struct buffer *received; /* a ring */
    uint32_t capacity;
    uint32_t put, shown, taken;
    uint64_t notifications;
    uint32_t shut; /* classes, as bits */
};

static struct memory_port *of(struct zovn_port *port) {
    return (struct memory_port *)port;
}

static bool grow(struct buffer *buffer, uint32_t length) {
    if (length > buffer->room) {
        uint8_t *bytes = realloc(buffer->bytes, length);
        if (!bytes)
            return false;
        buffer->bytes = bytes;
        buffer->room = length;
    }
    buffer->length = length;
    return true;
}

static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct memory_port *memory = of(port);
    uint32_t count = 0;
    while (count < most && memory->peeked != memory->posted)
        heads[count++] = memory->order[memory->peeked++ % port->heads];
    return count;
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    const struct buffer *sent = &of(port)->sent[head];
    zovn_frame_begin(frame);
    zovn_frame_append(frame, sent->bytes, sent->length);
    frame->offload = sent->offload;
    if (frame->length > ZOVN_MOST_BYTES)
        return ZOVN_FRAME_TOO_LONG;
    return frame->length < ZOVN_LEAST_BYTES ? ZOVN_FRAME_MALFORMED : ZOVN_FRAME_OK;
}

static bool room(struct zovn_port *port) {
    const struct memory_port *memory = of(port);
    return memory->put - memory->taken < memory->capacity;
}

static bool class_room(struct zovn_port *port, uint32_t class) {
    return !(of(port)->shut >> class & 1);
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    struct memory_port *memory = of(port);
    if (!room(port) || !class_room(port, frame->class))
        return ZOVN_PUT_NO_ROOM;
    struct buffer *buffer = &memory->received[memory->put % memory->capacity];
    if (!grow(buffer, frame->length))
        return ZOVN_PUT_NO_ROOM;
    zovn_frame_copy(frame, &(struct zovn_segment){buffer->bytes, frame->length});
    buffer->offload = frame->offload;
    memory->put++;
    return ZOVN_PUT_DONE;
}

static void complete(struct zovn_port *port, uint16_t head) {
    struct memory_port *memory = of(port);
    memory->given[memory->given_count++] = head;
}

static void publish(struct zovn_port *port) {
    struct memory_port *memory = of(port);
    if (!memory->given_count && memory->shown == memory->put)
        return;
    for (uint32_t i = 0; i < memory->given_count; i++)
        memory->unused[memory->unused_count++] = memory->given[i];
    memory->given_count = 0;
    memory->shown = memory->put;
    memory->notifications++;
}

static void discard(struct buffer *buffers, uint32_t count) {
    for (uint32_t i = 0; buffers && i < count; i++)
        free(buffers[i].bytes);
    free(buffers);
}

static void free_port(struct zovn_port *port) {
    struct memory_port *memory = of(port);
    discard(memory->sent, port->heads);
    discard(memory->received, memory->capacity);
    free(memory->unused);
    free(memory->given);
    free(memory->order);
    free(memory);
}

static const struct zovn_port_calls CALLS = {peek, frame, put, room, complete, publish, free_port};

struct zovn_port *zovn_memory_port_new(uint32_t sent, uint32_t received) {
    struct memory_port *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->port = (struct zovn_port){.calls = &CALLS, .heads = sent};
    memory->capacity = received;
    memory->sent = calloc(sent, sizeof *memory->sent);
    memory->received = calloc(received, sizeof *memory->received);
    memory->unused = calloc(sent, sizeof *memory->unused);
    memory->given = calloc(sent, sizeof *memory->given);
    memory->order = calloc(sent, sizeof *memory->order);
    if (!memory->sent || !memory->received || !memory->unused || !memory->given || !memory->order) {
        free_port(&memory->port);
        return NULL;
    }
    for (; memory->unused_count < sent; memory->unused_count++)
        memory->unused[memory->unused_count] = (uint16_t)(sent - 1 - memory->unused_count);
    return &memory->port;
}

void zovn_memory_port_offloads(struct zovn_port *port, uint32_t sends, uint32_t takes) {
    port->sends = sends;
    port->takes = takes;
}

void zovn_memory_port_costly(struct zovn_port *port) {
    port->costly = true;
}

bool zovn_memory_port_send(struct zovn_port *port, const uint8_t *bytes, uint32_t length,
                           const struct zovn_offload *offload) {
    struct memory_port *memory = of(port);
    if (!memory->unused_count)
        return false;
    uint16_t head = memory->unused[memory->unused_count - 1];
    struct buffer *buffer = &memory->sent[head];
    if (!grow(buffer, length))
        return false;
    memcpy(buffer->bytes, bytes, length);
    buffer->offload = offload ? *offload : (struct zovn_offload){0};
    memory->unused_count--;
    memory->order[memory->posted++ % port->heads] = head;
    return true;
}

uint32_t zovn_memory_port_receive(struct zovn_port *port, uint8_t *to,
                                  struct zovn_offload *offload) {
    struct memory_port *memory = of(port);
    if (memory->taken == memory->shown)
        return 0;
    const struct buffer *buffer = &memory->received[memory->taken++ % memory->capacity];
    memcpy(to, buffer->bytes, buffer->length);
    if (offload)
        *offload = buffer->offload;
    return buffer->length;
}

void zovn_memory_port_shut(struct zovn_port *port, uint32_t classes) {
    of(port)->shut = classes;
    port->class_room = class_room;
}

uint32_t zovn_memory_port_free_heads(const struct zovn_port *port) {
    return ((const struct memory_port *)port)->unused_count;
}

uint64_t zovn_memory_port_notifications(const struct zovn_port *port) {
    return ((const struct memory_port *)port)->notifications;
}
