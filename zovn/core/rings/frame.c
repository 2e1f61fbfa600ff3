/* Segments of a frame: append, prepend, trim, keep, copy. */
#include "rings/frame.h"

#include <string.h>

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

bool zovn_frame_append(struct zovn_frame *frame, uint8_t *bytes, uint32_t length) {
    if (frame->end == ZOVN_MOST_PREPENDED + ZOVN_MOST_SEGMENTS)
        return false;
    frame->segments[frame->end++] = (struct zovn_segment){bytes, length};
    frame->length += length;
    return true;
}

void zovn_frame_prepend(struct zovn_frame *frame, uint8_t *bytes, uint32_t length) {
    frame->segments[--frame->first] = (struct zovn_segment){bytes, length};
    frame->length += length;
}

void zovn_frame_trim(struct zovn_frame *frame, uint32_t length) {
    frame->length -= length;
    while (length) {
        struct zovn_segment *segment = &frame->segments[frame->first];
        uint32_t part = least(length, segment->length);
        segment->bytes += part;
        segment->length -= part;
        length -= part;
        if (!segment->length)
            frame->first++;
    }
}

void zovn_frame_keep(struct zovn_frame *frame, uint32_t length) {
    frame->length = length;
    frame->end = frame->first;
    while (length) {
        struct zovn_segment *segment = &frame->segments[frame->end++];
        segment->length = least(length, segment->length);
        length -= segment->length;
    }
}

void zovn_frame_peek_parts(const struct zovn_frame *frame, uint8_t *to, uint32_t length) {
    for (uint32_t i = frame->first; length; i++) {
        uint32_t part = least(length, frame->segments[i].length);
        memcpy(to, frame->segments[i].bytes, part);
        to += part;
        length -= part;
    }
}

void zovn_frame_copy(const struct zovn_frame *frame, const struct zovn_segment *to) {
    uint32_t filled = 0;
    for (uint32_t i = frame->first; i < frame->end; i++) {
        const struct zovn_segment *from = &frame->segments[i];
        for (uint32_t done = 0; done < from->length;) {
            uint32_t part = least(from->length - done, to->length - filled);
            memcpy(to->bytes + filled, from->bytes + done, part);
            done += part;
            filled += part;
            if (filled == to->length) {
                to++;
                filled = 0;
            }
        }
    }
}
