/* A physical switch of several ports: how it is set up, and how frames come and leave. */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "star_parts.h"

struct star *star_new(const struct star_settings *settings) {
    struct star *star = allocate(1, sizeof *star);
    star->settings = *settings;
    pool_open(&star->pool, settings->frames);
    return star;
}

void star_free(struct star *star) {
    pool_close(&star->pool);
    free(star);
}

void star_line(struct star *star, size_t port, uint64_t rate_bps, uint64_t delay_ns,
               const char *address) {
    const struct star_settings *settings = &star->settings;
    struct port *set = &star->ports[port];
    memcpy(set->address, address, ADDRESS_BYTES);
    set->output.rate_bps = rate_bps;
    set->output.delay_ns = delay_ns;
    set->limits = (struct share_limits){
        .room_bytes = settings->buffer_bytes,
        .xoff_bytes = settings->xoff_bytes,
        .xon_bytes = settings->xon_bytes,
        .refresh_ns = pfc_ns(settings->quanta, rate_bps) / 2,
    };
}

bool star_enter(struct star *star, const char *address, size_t port) {
    if (star->addresses == STAR_ADDRESSES) {
        return false;
    }
    struct entry *entry = &star->table[star->addresses++];
    memcpy(entry->address, address, ADDRESS_BYTES);
    entry->port = port;
    return true;
}

void star_arrive(struct star *star, size_t port, const char *data, size_t length, uint64_t now_ns) {
    struct port *in = &star->ports[port];
    struct star_frame *frame = length <= FRAME_MAX ? pool_take(&star->pool, data, length) : NULL;
    if (frame == NULL) {
        in->counts.missed++;
        return;
    }
    in->counts.packets_in++;
    in->counts.bytes_in += length;
    queue_add(&in->arriving, frame, now_ns + in->output.delay_ns);
}

const char *star_departure(const struct star *star, size_t port, uint64_t now_ns, size_t *length) {
    const struct star_queue *line = &star->ports[port].output.line;
    if (queue_due_ns(line) > now_ns) {
        return NULL;
    }
    *length = line->first->length;
    return line->first->data;
}

void star_sent(struct star *star, size_t port, bool taken, uint64_t now_ns) {
    struct star_counts *counts = &star->ports[port].counts;
    struct star_frame *frame = queue_remove(&star->ports[port].output.line);
    uint64_t late_ns = now_ns - frame->when_ns;
    counts->latest_ns = late_ns > counts->latest_ns ? late_ns : counts->latest_ns;
    counts->packets += taken;
    counts->bytes += taken ? frame->length : 0;
    counts->refused += !taken;
    pool_give(&star->pool, frame);
}

struct star_counts *star_counts(struct star *star, size_t port) {
    return &star->ports[port].counts;
}

uint64_t star_held_bytes(const struct star *star, size_t port) {
    const struct star_output *output = &star->ports[port].output;
    uint64_t bytes = output->line.bytes;
    for (size_t i = 0; i < CLASSES; i++) {
        bytes += output->classes[i].bytes;
    }
    return bytes;
}
