/* An output of the star: its queues by class, and which of them the line takes next. */
#ifndef LAB_TRAFFIC_STAR_OUTPUT_H
#define LAB_TRAFFIC_STAR_OUTPUT_H

#include "pfc.h"
#include "star_frames.h"

struct star_output {
    uint64_t rate_bps, delay_ns;
    uint64_t free_ns; /* when the line has sent what it sends */
    struct star_queue control, classes[CLASSES];
    uint64_t paused_until_ns[CLASSES];
    struct star_queue line; /* frames that the line has, until they are at its end */
};

/* Return when the next frame begins; the end of time if all classes are empty. */
uint64_t output_begins_ns(const struct star_output *output);
/* Put the frame on the line that begins then: control, then the highest class that is not paused. */
struct star_frame *output_begin(struct star_output *output);
/* Obey a PFC frame in one class; return by how much the pause is longer, modulo 2^64. */
uint64_t output_pause(struct star_output *output, size_t class, uint64_t until_ns, uint64_t now_ns);

#endif
