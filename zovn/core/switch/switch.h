/* The switch: ports, and a step that moves frames between them without loss.
 *
 * Frames stay in their senders' rings until their destinations have room
 * (docs/decisions/0082-frames-stay-in-the-senders-ring.md). Laws that hold between calls:
 *
 *  - in + copies = delivered + held + parked + drops, for the frames from each port;
 *  - frames from one port to another in one class arrive in the order in which they were sent;
 *  - a frame of a lossless class is never dropped because there is no room for it, unless its
 *    destination took nothing for `stall_ns`; or it was parked for so long, and a later flood of its
 *    sender needs the place;
 *  - frames for one destination never wait for another destination, but for floods: a frame that
 *    cannot be parked stays, for `stall_ns` at most, and so does what its sender sent after it.
 *
 * A port that breaks the rules of its ring is stopped; no other is affected. No globals, no threads, no
 * clock: time is a parameter in nanoseconds of any monotonic clock. Only `_new` and `_add` allocate.
 *
 * With `threads` in its settings, so many threads may step the switch, each its own part of the ports
 * (docs/decisions/0102-forwarding-threads.md). All other calls need a moment in which none of them is in
 * a step, and that `_settle` was called in it; but for `_due` of the thread's own part, and
 * `_wants_alone`. */
#ifndef ZOVN_SWITCH_SWITCH_H
#define ZOVN_SWITCH_SWITCH_H

#include "ports/port.h"
#include "switch/counters.h"
#include "switch/settings.h"

#pragma GCC visibility push(default)

struct zovn_switch;

/* Return a switch without ports; or NULL, with the problem in `*problem`. */
struct zovn_switch *zovn_switch_new(const struct zovn_settings *settings, const char **problem);

/* Remove all ports, and free them and the switch. */
void zovn_switch_free(struct zovn_switch *vswitch);

/* Add a port, which the switch owns from then on. Return its number; or -1, with the problem in
 * `*problem`, and the port is the caller's. */
int32_t zovn_switch_add(struct zovn_switch *vswitch, struct zovn_port *port,
                        const struct zovn_port_settings *settings, const char **problem);

/* Take no new frames from a port; return whether none that was taken is left. */
bool zovn_switch_drain(struct zovn_switch *vswitch, uint32_t port);

/* Remove a port and free it. Its sender gets back what it offered; what comes from it and waits
 * for it is dropped. `last`, which may be NULL, gets its counters. */
void zovn_switch_remove(struct zovn_switch *vswitch, uint32_t port, struct zovn_counters *last);

/* Take new frames of all ports, serve all destinations, then publish and notify. At most 64 frames from
 * a port are taken; at most 256 frames or segments go to a port, and at most 512 to all that are costly.
 * Return how many frames were taken, delivered or dropped: after 0 nothing changes until a peer or time does, unless a guest has more bad
 * receive buffers than a step tries. */
uint32_t zovn_switch_step(struct zovn_switch *vswitch, uint64_t now_ns);

/* The same for one part of the ports, of several; `_step` is for the first. `shown` gets the parts that
 * were shown something, as bits: they move it in their next step. */
uint32_t zovn_switch_step_part(struct zovn_switch *vswitch, uint32_t part, uint64_t now_ns,
                               uint32_t *shown);

/* Return whether `_settle` is needed, for something that touches several parts. */
bool zovn_switch_wants_alone(const struct zovn_switch *vswitch);

/* While no part is in a step: end what is on its way between parts, and do what waited for that. Each part
 * needs a step after it. With one part it does nothing. */
void zovn_switch_settle(struct zovn_switch *vswitch);

/* Return when a frame that waits for its port's rate may go, on the clock of the part's last step;
 * UINT64_MAX if none waits for that. A step is needed then, though no peer has done anything. */
uint64_t zovn_switch_due(const struct zovn_switch *vswitch, uint32_t part);

/* Return which part has a port, or -1. */
int32_t zovn_switch_part(const struct zovn_switch *vswitch, uint32_t port);

/* Make an address static. Return false if there is no such port, it has no room for the address, or
 * that is a static one of another port. */
bool zovn_switch_fix(struct zovn_switch *vswitch, uint32_t port, uint16_t vlan,
                     const uint8_t *address);

/* Return the port behind which an address is known, or -1. */
int32_t zovn_switch_find(struct zovn_switch *vswitch, uint16_t vlan, const uint8_t *address);

/* Learn that an address is behind a port, and tell all others of its VLAN by a frame from there: a RARP
 * request. Return false if there is no such port, its VLAN or the address can have no such frame, or its
 * parking is full. */
bool zovn_switch_announce(struct zovn_switch *vswitch, uint32_t port, const uint8_t *address);

/* An address behind a port. */
struct zovn_known {
    uint8_t address[6];
    uint16_t vlan;
    uint8_t port;
    bool fixed; /* static */
};

/* Copy at most `room` known addresses, from the place `*at` of their table on, and look at 4096
 * places at most. `*at` is then the place to go on at, or 0 at the end. Return how many. */
uint32_t zovn_switch_known(const struct zovn_switch *vswitch, uint32_t *at,
                           struct zovn_known *known, uint32_t room);

/* Return whether the port exists, with its counters. */
bool zovn_switch_counters(const struct zovn_switch *vswitch, uint32_t port,
                          struct zovn_counters *counters);

/* Return why a port was stopped; ZOVN_SOUND if it was not. */
enum zovn_fault zovn_switch_fault(const struct zovn_switch *vswitch, uint32_t port);

/* Return whether a port is treated as lossy now, since it takes nothing. */
bool zovn_switch_stalled(const struct zovn_switch *vswitch, uint32_t port);

/* Check all counters against all queues; return what does not hold, or NULL. For tests: slow. */
const char *zovn_switch_check(const struct zovn_switch *vswitch);

#pragma GCC visibility pop
#endif
