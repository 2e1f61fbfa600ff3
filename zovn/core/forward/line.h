/* A named port over all attachments of its peer: guests come, leave and come again. */
#ifndef ZOVN_FORWARD_LINE_H
#define ZOVN_FORWARD_LINE_H

#include "forward/forwarder.h"

struct zovn_line {
    struct zovn_forwarder *forwarder;
    struct zovn_port_options options;
    pthread_mutex_t lock; /* of what follows: sessions change it, the control thread reads it */
    int32_t place;        /* in the switch; -1: no peer is attached */
    uint64_t attachments;
    struct zovn_counters before; /* of earlier attachments */
};

void zovn_line_init(struct zovn_line *line, struct zovn_forwarder *forwarder,
                    const struct zovn_port_options *options);

/* Return false with the problem: the port is then still the caller's. */
bool zovn_line_attach(struct zovn_line *line, const struct zovn_attachment *attachment,
                      const char **problem);

/* Deliver what was taken, within limits; then remove the port and free it. */
void zovn_line_detach(struct zovn_line *line);

/* Replace one of the files that wake the forwarding thread, and make a call between two steps. */
void zovn_line_rewake(struct zovn_line *line, uint32_t which, int file, void (*call)(void *context),
                      void *context);

/* Return its place in the switch now; -1: no peer is attached. */
int32_t zovn_line_place(struct zovn_line *line);

struct zovn_line_state {
    struct zovn_port_state port; /* its counters are sums over all attachments */
    uint64_t attachments;
    bool attached;
};

void zovn_line_look(struct zovn_line *line, struct zovn_line_state *state);

#endif
