/* An output of the star: its queues by class, and which of them the line takes next. */
#include "star_output.h"

#define BITS_NS 8000000000ULL /* of a byte at one bit/s */

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Return from when on a class may send; the end of time if it is empty. */
static uint64_t ready_ns(const struct star_output *output, size_t class) {
    return later(queue_due_ns(&output->classes[class]), output->paused_until_ns[class]);
}

uint64_t output_begins_ns(const struct star_output *output) {
    uint64_t first = queue_due_ns(&output->control);
    for (size_t i = 0; i < CLASSES; i++) {
        if (output->classes[i].first != NULL) {
            first = earlier(first, ready_ns(output, i));
        }
    }
    return later(first, output->free_ns);
}

static struct star_queue *next_queue(struct star_output *output, uint64_t begins_ns) {
    if (queue_due_ns(&output->control) <= begins_ns) {
        return &output->control;
    }
    size_t class = CLASSES - 1;
    while (ready_ns(output, class) > begins_ns) {
        class--;
    }
    return &output->classes[class];
}

struct star_frame *output_begin(struct star_output *output) {
    uint64_t begins_ns = output_begins_ns(output);
    struct star_frame *frame = queue_remove(next_queue(output, begins_ns));
    output->free_ns = begins_ns + frame->length * BITS_NS / output->rate_bps;
    queue_add(&output->line, frame, output->free_ns + output->delay_ns);
    return frame;
}

uint64_t output_pause(struct star_output *output, size_t class, uint64_t until_ns,
                      uint64_t now_ns) {
    uint64_t before = later(output->paused_until_ns[class], now_ns);
    output->paused_until_ns[class] = until_ns;
    return until_ns - before;
}
