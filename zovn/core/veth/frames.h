/* The frames that port and kernel share (AF_XDP, copy mode): their memory and the rings that pass them.
 *
 * Two sockets share them. The one that receives is only ever run by busy polls; the one that sends
 * is not polled, since a send would otherwise run the receiving NAPI as well. */
#ifndef ZOVN_VETH_FRAMES_H
#define ZOVN_VETH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/if_xdp.h>

enum {
    ZOVN_RECEIVED = 1024, /* frames that the container may have sent */
    ZOVN_FIRST_FRAME = ZOVN_RECEIVED, /* the one that comes another way */
    ZOVN_HEADS = ZOVN_RECEIVED + 1,
    ZOVN_SENT = 256, /* frames for the container that it has not taken yet */
    ZOVN_FRAMES = ZOVN_HEADS + ZOVN_SENT,
};

/* The largest frame for chunks of 4096 bytes: the kernel keeps 256 before each. */
enum { ZOVN_MOST_FRAME = 4096 - 256, ZOVN_FRAME_HEADERS = 14 + 4 };

struct zovn_shared_ring {
    uint32_t *producer, *consumer;
    void *entries;
    void *memory;
    size_t bytes;
    uint32_t size, at; /* `at`: our side's place, shown by the calls below */
};

struct zovn_frames {
    int receive, send; /* sockets */
    uint8_t *memory;
    uint32_t chunk;
    struct zovn_shared_ring fill, received, sent, completed;
    uint32_t given; /* frames that the kernel has to receive into, and that are not taken yet */
    uint16_t unused[ZOVN_SENT]; /* frames to send with: a stack */
    uint32_t unused_count;
};

/* Return 0 or a negative errno. `most`: bytes of a frame. */
int zovn_frames_open(struct zovn_frames *frames, uint32_t most);
int zovn_frames_bind(const struct zovn_frames *frames, uint32_t interface);
void zovn_frames_close(struct zovn_frames *frames);

static inline uint8_t *zovn_frame_memory(const struct zovn_frames *frames, uint32_t frame) {
    return frames->memory + (uint64_t)frame * frames->chunk;
}

/* Take a received frame; return whether there was one. */
bool zovn_frames_take(struct zovn_frames *frames, struct xdp_desc *taken);

/* Return how many frames the kernel can still receive. */
uint32_t zovn_frames_room(const struct zovn_frames *frames);

/* Let the kernel receive into a frame again, after the next `show`. */
void zovn_frames_refill(struct zovn_frames *frames, uint32_t frame);
void zovn_frames_show(struct zovn_frames *frames);

/* Queue the frame on top of `unused`, which must have one. */
void zovn_frames_queue(struct zovn_frames *frames, uint32_t length);

/* Pass what is queued to the container as far as it has room. Return 0, or -ENXIO if its interface
 * is gone. */
int zovn_frames_send(struct zovn_frames *frames);

/* Return how many queued frames the kernel has not taken. */
uint32_t zovn_frames_unsent(const struct zovn_frames *frames);

/* Return how many frames the kernel has lost since it had none to receive into. */
uint64_t zovn_frames_lost(const struct zovn_frames *frames);

#endif
