/* How long the forwarding thread may sleep, and how often it steps before: pure decisions. */
#ifndef ZOVN_FORWARD_REST_H
#define ZOVN_FORWARD_REST_H

#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    ZOVN_LONGEST_NAP_NS = 100000000, /* a second net where all peers notify */
    ZOVN_FIRST_NAP_NS = 20000,       /* with ports that are polled: right after a move */
    /* and after a while without one, for each such port, within limits: */
    ZOVN_NAP_OF_PORT_NS = 125000,
    ZOVN_LEAST_IDLE_NAP_NS = 1000000,
    ZOVN_MOST_IDLE_NAP_NS = 4000000,
};

/* Return how many steps without a move come before a sleep. A step costs a system call for each
 * port that is polled. */
uint32_t zovn_rest_steps(uint32_t polled);

/* Return how long to sleep. What an idle switch costs is the same for any number of ports: the more
 * are polled, the longer it sleeps.
 *
 * polled: ports of which the peers cannot end a sleep.
 * before_ns: the last sleep, if nothing moved since; else 0.
 * due_ns: until a frame that waits for its port's rate may go; UINT64_MAX: none waits. */
uint64_t zovn_rest_ns(uint32_t polled, uint64_t before_ns, uint64_t due_ns);

#pragma GCC visibility pop

#endif
