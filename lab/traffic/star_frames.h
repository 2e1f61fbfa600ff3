/* Frames in a pool of their own, and in queues. */
#ifndef LAB_TRAFFIC_STAR_FRAMES_H
#define LAB_TRAFFIC_STAR_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "tagged.h"

struct star_frame {
    struct star_frame *next;
    uint64_t when_ns; /* when it is at the end of the queue that it is in */
    size_t length, from;
    unsigned class;
    char data[FRAME_MAX];
};

struct star_queue {
    struct star_frame *first, *last;
    uint64_t bytes;
};

struct star_pool {
    struct star_frame *all, *free;
    size_t frames, used; /* those behind were never used, and need no memory */
};

void pool_open(struct star_pool *pool, size_t frames);
void pool_close(struct star_pool *pool);
/* Return a frame with this content, or NULL if none is free. */
struct star_frame *pool_take(struct star_pool *pool, const char *data, size_t length);
void pool_give(struct star_pool *pool, struct star_frame *frame);

void queue_add(struct star_queue *queue, struct star_frame *frame, uint64_t when_ns);
struct star_frame *queue_remove(struct star_queue *queue);
/* Return when the first frame is due; the end of time for no frame. */
uint64_t queue_due_ns(const struct star_queue *queue);

#endif
