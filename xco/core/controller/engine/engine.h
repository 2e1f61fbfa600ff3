// The controller's decisions: messages and instants in, messages out. No clock, no socket, no file.
//
// The caller passes each message that arrived and each instant at which it woke. It takes the
// messages to send until there are none, and sleeps until the deadline. The same calls in the same
// order give the same messages. One thread at a time. Times are nanoseconds of one clock.
#ifndef XCO_CONTROLLER_ENGINE_ENGINE_H
#define XCO_CONTROLLER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/engine/network.h"
#include "controller/engine/settings.h"
#include "common/message.h"

// Takes ownership of the network (freed on failure too) and `weights` (one per host, NULL: all 1).
// Returns NULL on failure: *problem then says why.
struct xco_control *xco_control_new(const struct xco_control_settings *settings,
                                    struct xco_network *network, uint32_t *weights,
                                    const char **problem);
void xco_control_free(struct xco_control *core);

// Continues the sequences of another core of the same epoch, its own and the hosts': its messages
// and theirs stay older. False: no memory.
bool xco_control_succeed(struct xco_control *core, const struct xco_control *before);

// Switches to another strategy (enum xco_strategy); false: unknown strategy.
bool xco_control_set_strategy(struct xco_control *core, uint64_t now_ns, uint8_t strategy);

// Takes a message read at `now_ns` that reached this machine at `arrived_ns`: decisions use the
// first instant, the hosts' clocks the second.
enum xco_receive_result xco_control_receive(struct xco_control *core, uint64_t now_ns,
                                            uint64_t arrived_ns, const struct xco_message *message);

// Does the work due at this instant. Call it after a batch of messages, and at the deadline.
void xco_control_advance(struct xco_control *core, uint64_t now_ns);

// Returns the next instant at which `advance` has work to do; UINT64_MAX: none.
uint64_t xco_control_deadline(const struct xco_control *core);

// Takes the next message to send, stamped with `now_ns`.
bool xco_control_take(struct xco_control *core, uint64_t now_ns, struct xco_message *message);

#endif
