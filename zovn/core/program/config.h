/* The plain configuration, which zovn/switch/config.py writes: a line for each key. */
#ifndef ZOVN_PROGRAM_CONFIG_H
#define ZOVN_PROGRAM_CONFIG_H

#include <stdio.h>

#include "forward/options.h"
#include "program/words.h"

enum { ZOVN_LINE_BYTES = 4096 };

struct zovn_config {
    struct zovn_settings settings;
    char control[ZOVN_PATH_BYTES];
    int64_t control_group; /* -1: none */
    uint32_t port_count;
    char ports[ZOVN_MOST_PORTS][ZOVN_LINE_BYTES]; /* their words */
};

/* Read a file; return false with the problem. */
bool zovn_config_read(struct zovn_config *config, FILE *file, struct zovn_problem *problem);

#endif
