/* Frames in a pool of their own, and in queues. */
#include "star_frames.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

void pool_open(struct star_pool *pool, size_t frames) {
    *pool = (struct star_pool){.all = allocate(frames, sizeof(struct star_frame))};
    pool->frames = frames;
}

void pool_close(struct star_pool *pool) {
    free(pool->all);
}

static struct star_frame *free_frame(struct star_pool *pool) {
    struct star_frame *frame = pool->free;
    if (frame != NULL) {
        pool->free = frame->next;
        return frame;
    }
    return pool->used < pool->frames ? &pool->all[pool->used++] : NULL;
}

struct star_frame *pool_take(struct star_pool *pool, const char *data, size_t length) {
    struct star_frame *frame = free_frame(pool);
    if (frame != NULL) {
        frame->length = length;
        memcpy(frame->data, data, length);
    }
    return frame;
}

void pool_give(struct star_pool *pool, struct star_frame *frame) {
    frame->next = pool->free;
    pool->free = frame;
}

void queue_add(struct star_queue *queue, struct star_frame *frame, uint64_t when_ns) {
    frame->next = NULL;
    frame->when_ns = when_ns;
    if (queue->first == NULL) {
        queue->first = frame;
    } else {
        queue->last->next = frame;
    }
    queue->last = frame;
    queue->bytes += frame->length;
}

struct star_frame *queue_remove(struct star_queue *queue) {
    struct star_frame *frame = queue->first;
    queue->first = frame->next;
    queue->bytes -= frame->length;
    return frame;
}

uint64_t queue_due_ns(const struct star_queue *queue) {
    return queue->first == NULL ? UINT64_MAX : queue->first->when_ns;
}
