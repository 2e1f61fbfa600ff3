/* The kinds of ports. */
#ifndef ZOVN_PROGRAM_KINDS_H
#define ZOVN_PROGRAM_KINDS_H

#include "forward/line.h"

struct zovn_kind {
    const char *name;
    /* Make a port; return NULL with the problem. */
    void *(*open)(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                  const char **problem);
    /* Deliver what was taken, within limits; then undo what `open` did. */
    void (*close)(void *opened);
    struct zovn_line *(*line)(void *opened);
};

/* Return a kind by its name, or NULL. */
const struct zovn_kind *zovn_kind_find(const char *name);

#endif
