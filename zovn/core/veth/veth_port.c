/* A port to a namespace or container: the host's end of a veth, without loss (AF_XDP). */
#include "veth/veth_port.h"

#include <errno.h>
#include <string.h>

#include "system/dropped.h"
#include "veth/frames.h"
#include "veth/poller.h"
#include "veth/veth_parts.h"

enum { LOOK_EVERY = 64 }; /* peeks between two looks for changes of the interface */

static struct zovn_veth *of(struct zovn_port *port) {
    return (struct zovn_veth *)port;
}

static uint16_t hold(struct zovn_veth *veth, uint32_t head, uint8_t *bytes, uint32_t length) {
    veth->held[head] = (struct zovn_segment){bytes, length};
    return (uint16_t)head;
}

/* Everything else that the container sent came later. */
static uint32_t peek_first(struct zovn_veth *veth, uint16_t *heads) {
    if (veth->held[ZOVN_FIRST_FRAME].bytes)
        return 0;
    uint8_t *place = zovn_frame_memory(&veth->frames, ZOVN_FIRST_FRAME);
    uint32_t length = zovn_poller_first(veth->poller, place, veth->frames.chunk);
    if (!length)
        return 0;
    veth->runs = true;
    heads[0] = hold(veth, ZOVN_FIRST_FRAME, place, length);
    return 1;
}

static uint32_t take(struct zovn_veth *veth, uint16_t *heads, uint32_t most) {
    struct xdp_desc taken;
    uint32_t count = 0;
    while (count < most && zovn_frames_take(&veth->frames, &taken)) {
        uint32_t head = (uint32_t)(taken.addr / veth->frames.chunk);
        heads[count++] = hold(veth, head, veth->frames.memory + taken.addr, taken.len);
    }
    return count;
}

static uint32_t peek(struct zovn_port *port, uint16_t *heads, uint32_t most) {
    struct zovn_veth *veth = of(port);
    if (veth->peeks++ % LOOK_EVERY == 0)
        zovn_veth_look(veth);
    if (port->fault || !most)
        return 0;
    if (!veth->runs && zovn_program_has_first(&veth->program))
        return peek_first(veth, heads);
    if (veth->runs && zovn_frames_room(&veth->frames) >= 2 * ZOVN_BUDGET)
        zovn_poller_run(veth->poller);
    return take(veth, heads, most);
}

static enum zovn_frame_result frame(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame) {
    const struct zovn_segment *held = &of(port)->held[head];
    zovn_frame_begin(frame);
    zovn_frame_append(frame, held->bytes, held->length);
    return held->length < ZOVN_LEAST_BYTES ? ZOVN_FRAME_MALFORMED : ZOVN_FRAME_OK;
}

static bool room(struct zovn_port *port) {
    return of(port)->frames.unused_count > 0;
}

static enum zovn_put_result put(struct zovn_port *port, struct zovn_frame *frame) {
    struct zovn_frames *frames = &of(port)->frames;
    if (frame->length > of(port)->most)
        return ZOVN_PUT_TOO_LONG;
    if (!frames->unused_count)
        return ZOVN_PUT_NO_ROOM;
    uint8_t *to = zovn_frame_memory(frames, frames->unused[frames->unused_count - 1]);
    zovn_frame_copy(frame, &(struct zovn_segment){to, frame->length});
    zovn_frames_queue(frames, frame->length);
    return ZOVN_PUT_DONE;
}

static void complete(struct zovn_port *port, uint16_t head) {
    of(port)->held[head] = (struct zovn_segment){0};
    if (head != ZOVN_FIRST_FRAME)
        zovn_frames_refill(&of(port)->frames, head);
}

static void publish(struct zovn_port *port) {
    zovn_frames_show(&of(port)->frames);
    if (zovn_frames_send(&of(port)->frames))
        port->fault = ZOVN_PEER_GONE;
}

/* The container can still take what the kernel has taken, but nothing else. */
static void count(const struct zovn_port *port, struct zovn_port_counts *counts) {
    const struct zovn_veth *veth = (const struct zovn_veth *)port;
    counts->overruns = veth->ending ? zovn_frames_unsent(&veth->frames) : 0;
}

static void free_port(struct zovn_port *port) {
    zovn_veth_close(of(port));
}

static const struct zovn_port_calls CALLS = {peek, frame, put, room, complete, publish, free_port};

struct zovn_port *zovn_veth_port_new(const char *interface, char *problem) {
    struct zovn_veth *veth = zovn_veth_open(interface, problem);
    if (!veth)
        return NULL;
    veth->port = (struct zovn_port){.calls = &CALLS, .heads = ZOVN_HEADS, .count = count};
    return &veth->port;
}

/* What is no veth is possible: it does not become one, so the port says why it is refused. */
bool zovn_veth_port_possible(const char *interface) {
    struct zovn_interface found;
    int error = zovn_interface_look_up(&found, interface);
    return error ? error != -ENODEV : found.up;
}

enum zovn_veth_state zovn_veth_port_state(const struct zovn_port *port) {
    const struct zovn_veth *veth = (const struct zovn_veth *)port;
    if (port->fault)
        return ZOVN_VETH_GONE;
    if (veth->runs)
        return ZOVN_VETH_RUNS;
    return zovn_program_has_first(&veth->program) ? ZOVN_VETH_FIRST : ZOVN_VETH_SILENT;
}

void zovn_veth_port_end(struct zovn_port *port) {
    of(port)->ending = true;
}

/* The kernel takes what it sends by the socket, and drops it if the other end is down. */
uint64_t zovn_veth_port_lost(const struct zovn_port *port) {
    const struct zovn_veth *veth = (const struct zovn_veth *)port;
    uint64_t dropped = zovn_dropped(veth->interface.name), before = veth->dropped_before;
    return zovn_frames_lost(&veth->frames) + (dropped > before ? dropped - before : 0);
}
