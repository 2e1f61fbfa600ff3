/* The forwarding threads, as others see them: each function here has them do its work between two of
 * their steps. */
#ifndef ZOVN_FORWARD_FORWARDER_H
#define ZOVN_FORWARD_FORWARDER_H

#include "forward/options.h"
#include "forward/threads.h"

/* What is known of an attached port. */
struct zovn_port_state {
    struct zovn_counters counters;
    enum zovn_fault fault;
    bool stalled;
    int32_t thread; /* the number of the one that has it */
};

struct zovn_forwarder {
    struct zovn_switch *vswitch;
    struct zovn_threads threads;
};

/* Start the threads; return NULL, or what went wrong. */
const char *zovn_forwarder_start(struct zovn_forwarder *forwarder,
                                 const struct zovn_settings *settings);

/* End the threads, and free the switch. */
void zovn_forwarder_stop(struct zovn_forwarder *forwarder);

/* Add a port; return its place, or -1 with the problem: the port is then still the caller's. */
int32_t zovn_forwarder_attach(struct zovn_forwarder *forwarder,
                              const struct zovn_attachment *attachment,
                              const struct zovn_port_options *options, const char **problem);

/* Take no new frames from a port, and wait until those taken are delivered, within limits. */
void zovn_forwarder_drain(struct zovn_forwarder *forwarder, int32_t place);

/* Remove a port and free it; `last` gets its counters. */
void zovn_forwarder_detach(struct zovn_forwarder *forwarder, int32_t place,
                           struct zovn_counters *last);

/* Make a call between two steps, with the port's file at `which` replaced before it. */
void zovn_forwarder_rewake(struct zovn_forwarder *forwarder, int32_t place, uint32_t which,
                           int file, void (*call)(void *context), void *context);

/* Make a call between two steps. */
void zovn_forwarder_call(struct zovn_forwarder *forwarder, void (*call)(void *context),
                         void *context);

void zovn_forwarder_look(struct zovn_forwarder *forwarder, int32_t place,
                         struct zovn_port_state *state);

/* Return how many times the threads slept, and in `missed` how many times the bound ended that. */
uint64_t zovn_forwarder_naps(struct zovn_forwarder *forwarder, uint64_t *missed);

#endif
