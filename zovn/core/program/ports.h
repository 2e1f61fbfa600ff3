/* The ports of the program, by name. */
#ifndef ZOVN_PROGRAM_PORTS_H
#define ZOVN_PROGRAM_PORTS_H

#include <stdio.h>

#include "program/kinds.h"
#include "program/words.h"

struct zovn_ports {
    struct zovn_forwarder *forwarder;
    uint32_t lossy;     /* classes with a limit */
    uint32_t addresses; /* of each port, at most */
    uint32_t count;
    struct zovn_named {
        const struct zovn_kind *kind;
        void *opened;
    } named[ZOVN_MOST_PORTS];
};

/* Add a port from its words; return false with the problem. */
bool zovn_ports_add(struct zovn_ports *ports, char *words, struct zovn_problem *problem);

bool zovn_ports_remove(struct zovn_ports *ports, const char *name, struct zovn_problem *problem);

void zovn_ports_remove_all(struct zovn_ports *ports);

/* About once a second: let ports look for peers that come and go by themselves. */
void zovn_ports_tick(struct zovn_ports *ports);

/* Write a line for each port: what it is, and with `counters` what it counted. */
void zovn_ports_write(const struct zovn_ports *ports, bool counters, FILE *to);

#endif
