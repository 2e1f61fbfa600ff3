/* The control socket: lines of words come in; an answer ends with `ok` or `error PROBLEM`. */
#ifndef ZOVN_PROGRAM_CONTROL_H
#define ZOVN_PROGRAM_CONTROL_H

#include "program/commands.h"

enum { ZOVN_CLIENTS = 8 };

struct zovn_client {
    int file; /* -1: none */
    size_t filled;
    char line[ZOVN_LINE_BYTES];
};

struct zovn_control {
    struct zovn_ports *ports;
    int listener, signals;
    int watchdog; /* -1: none */
    int tick;     /* a timer, for ports */
    const char *path;
    struct zovn_client clients[ZOVN_CLIENTS];
};

/* Listen; return NULL, or the problem. */
const char *zovn_control_open(struct zovn_control *control, const char *path, int64_t group,
                              struct zovn_ports *ports, int signals);

/* Serve clients until one of them or a signal ends it. */
void zovn_control_run(struct zovn_control *control);

void zovn_control_close(struct zovn_control *control);

#endif
