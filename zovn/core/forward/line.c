/* Attaches and detaches a named port, and adds up its counters. */
#include "forward/line.h"

#include <string.h>

void zovn_line_init(struct zovn_line *line, struct zovn_forwarder *forwarder,
                    const struct zovn_port_options *options) {
    *line = (struct zovn_line){.forwarder = forwarder, .options = *options, .place = -1};
    pthread_mutex_init(&line->lock, NULL);
}

bool zovn_line_attach(struct zovn_line *line, const struct zovn_attachment *attachment,
                      const char **problem) {
    pthread_mutex_lock(&line->lock);
    line->place = zovn_forwarder_attach(line->forwarder, attachment, &line->options, problem);
    bool attached = line->place >= 0;
    line->attachments += attached;
    pthread_mutex_unlock(&line->lock);
    return attached;
}

/* All fields are numbers of 64 bits, and all but one are sums. */
static void add(struct zovn_counters *to, const struct zovn_counters *counters) {
    uint64_t sums[sizeof *to / sizeof(uint64_t)], others[sizeof *to / sizeof(uint64_t)];
    memcpy(sums, to, sizeof sums);
    memcpy(others, counters, sizeof others);
    for (uint32_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        sums[i] += others[i];
    uint64_t longest_ns = to->longest_ns;
    memcpy(to, sums, sizeof sums);
    to->longest_ns = longest_ns > counters->longest_ns ? longest_ns : counters->longest_ns;
}

void zovn_line_detach(struct zovn_line *line) {
    struct zovn_counters last;
    zovn_forwarder_drain(line->forwarder, line->place);
    pthread_mutex_lock(&line->lock);
    zovn_forwarder_detach(line->forwarder, line->place, &last);
    add(&line->before, &last);
    line->place = -1;
    pthread_mutex_unlock(&line->lock);
}

void zovn_line_rewake(struct zovn_line *line, uint32_t which, int file, void (*call)(void *context),
                      void *context) {
    zovn_forwarder_rewake(line->forwarder, line->place, which, file, call, context);
}

int32_t zovn_line_place(struct zovn_line *line) {
    pthread_mutex_lock(&line->lock);
    int32_t place = line->place;
    pthread_mutex_unlock(&line->lock);
    return place;
}

void zovn_line_look(struct zovn_line *line, struct zovn_line_state *state) {
    *state = (struct zovn_line_state){0};
    pthread_mutex_lock(&line->lock);
    state->attached = line->place >= 0;
    state->attachments = line->attachments;
    if (state->attached)
        zovn_forwarder_look(line->forwarder, line->place, &state->port);
    add(&state->port.counters, &line->before);
    pthread_mutex_unlock(&line->lock);
}
