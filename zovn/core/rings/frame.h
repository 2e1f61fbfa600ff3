/* A frame's bytes where they lie: a list of segments, and work on its first bytes. */
#ifndef ZOVN_RINGS_FRAME_H
#define ZOVN_RINGS_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    ZOVN_MOST_SEGMENTS = 64,
    ZOVN_MOST_PREPENDED = 3,
    ZOVN_LEAST_BYTES = 14,     /* an Ethernet header */
    ZOVN_MOST_BYTES = 65535 + 18, /* the longest IP packet with a tagged Ethernet header */
    ZOVN_NO_CLASS = 0xff,
};

struct zovn_segment {
    uint8_t *bytes;
    uint32_t length;
};

/* What a sender leaves for others to do: the fields of virtio's network header. */
struct zovn_offload {
    uint8_t flags;
    uint8_t kind; /* of segmentation; 0: none */
    uint16_t header_bytes;
    uint16_t segment_bytes;
    uint16_t checksum_start;
    uint16_t checksum_offset;
};

struct zovn_frame {
    struct zovn_offload offload;
    uint8_t class;   /* set by a port that knows it, and by the switch; or ZOVN_NO_CLASS */
    uint32_t length; /* the sum of the segments in use */
    uint32_t first;  /* of the segments in use; those before it are room for headers */
    uint32_t end;
    struct zovn_segment segments[ZOVN_MOST_PREPENDED + ZOVN_MOST_SEGMENTS];
};

/* Begin a frame without bytes, with room for three headers before it. */
static inline void zovn_frame_begin(struct zovn_frame *frame) {
    frame->offload = (struct zovn_offload){0};
    frame->class = ZOVN_NO_CLASS;
    frame->length = 0;
    frame->first = frame->end = ZOVN_MOST_PREPENDED;
}

/* Append bytes; return whether there was room. */
bool zovn_frame_append(struct zovn_frame *frame, uint8_t *bytes, uint32_t length);

/* Put bytes before the first one. At most three more times than `zovn_frame_trim` emptied one. */
void zovn_frame_prepend(struct zovn_frame *frame, uint8_t *bytes, uint32_t length);

/* Remove the first bytes, at most all. */
void zovn_frame_trim(struct zovn_frame *frame, uint32_t length);

/* Return the only segment of a frame that has one; else none. */
static inline struct zovn_segment zovn_frame_whole(const struct zovn_frame *frame) {
    return frame->end == frame->first + 1 ? frame->segments[frame->first]
                                          : (struct zovn_segment){0};
}

/* Remove all but the first bytes. */
void zovn_frame_keep(struct zovn_frame *frame, uint32_t length);

/* The same, of a frame whose first segment may be shorter. */
void zovn_frame_peek_parts(const struct zovn_frame *frame, uint8_t *to, uint32_t length);

/* Copy the first bytes, at most all of them; the frame keeps them. */
static inline void zovn_frame_peek(const struct zovn_frame *frame, uint8_t *to, uint32_t length) {
    const struct zovn_segment *first = &frame->segments[frame->first];
    if (frame->first < frame->end && length <= first->length)
        memcpy(to, first->bytes, length);
    else
        zovn_frame_peek_parts(frame, to, length);
}

/* Copy all bytes into segments that have room for them. */
void zovn_frame_copy(const struct zovn_frame *frame, const struct zovn_segment *to);

#endif
