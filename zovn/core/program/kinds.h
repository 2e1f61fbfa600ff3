/* The kinds of ports. */
#ifndef ZOVN_PROGRAM_KINDS_H
#define ZOVN_PROGRAM_KINDS_H

#include <stdio.h>

#include "forward/line.h"

struct zovn_kind {
    const char *name;
    bool is_wire;      /* it has the options of one */
    bool by_interface; /* its peer is behind an interface; else behind the path of a socket */
    /* Make a port; return NULL with the problem. */
    void *(*open)(struct zovn_forwarder *forwarder, const struct zovn_port_options *options,
                  const char **problem);
    /* Deliver what was taken, within limits; then undo what `open` did. */
    void (*close)(void *opened);
    struct zovn_line *(*line)(void *opened);
    /* About once a second; NULL: there is nothing to do. */
    void (*tick)(void *opened);
    /* Write what only this kind has, as words, each after a space; NULL: nothing. */
    void (*report)(void *opened, FILE *to);
};

/* Return a kind by its name, or NULL. */
const struct zovn_kind *zovn_kind_find(const char *name);

#endif
