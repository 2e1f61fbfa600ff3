/* The switch's structures, for the files that implement it.
 *
 * A queue has the frames of one source and class to one destination, as references: a reference
 * is a head of the source's ring, or one copy of a frame that the source floods, which is parked.
 * The links of a queue are in the source's slots and parking, so queues need no memory.
 *
 * Each thread that steps the switch has a part of the ports. It alone changes what these are as
 * sources and as destinations, but for the links, which belong to a reference's destination while it
 * waits there. A reference goes to a destination of another part by a channel, and its end comes back by
 * another one. What is rare, and touches several parts, waits until no thread is in a step. */
#ifndef ZOVN_SWITCH_STATE_H
#define ZOVN_SWITCH_STATE_H

#include <stdatomic.h>

#include "switch/addresses.h"
#include "switch/channel.h"
#include "switch/facts.h"
#include "switch/pace.h"
#include "switch/set.h"

#define ZOVN_NONE UINT32_MAX
enum { ZOVN_BATCH = 64, ZOVN_QUANTUM = 3028 }; /* new heads of a port in a step; two long frames */

/* A frame in its sender's ring. */
struct zovn_slot {
    _Alignas(ZOVN_LINE) struct zovn_facts facts;
    struct zovn_segment whole; /* where it lies, if that is one place; else without bytes */
    uint32_t next;
    bool held;
    bool plain; /* it goes as it is where no tag and no mark is added */
};

enum { ZOVN_LIKES = 64, ZOVN_UNTAGGED = 14 }; /* the latter: bytes of such a header */

/* What was found for frames with a header without a tag: see switch/like.h. */
struct zovn_like {
    struct zovn_facts facts; /* but for the length, and what follows the header */
    uint64_t clock_ns, changes; /* of addresses: it holds until one of them is another */
    uint8_t destination;
    bool known;
};

/* A frame that waits for several destinations. */
struct zovn_parked {
    struct zovn_facts facts;
    struct zovn_set waits; /* the destinations; none: not in use */
    uint64_t since_ns;
    uint8_t *bytes;
    uint32_t next[ZOVN_MOST_PORTS]; /* by destination */
    uint32_t previous[ZOVN_MOST_PORTS]; /* the same; of no meaning for the first of a queue */
};

struct zovn_queue {
    uint32_t head, tail, count;
    uint16_t done; /* bytes of the first frame's payload that went out as segments */
    bool cut; /* the first frame goes out as segments, whatever the port takes */
    uint64_t credit; /* bytes that the source may still send in its turn */
};

struct zovn_class_queues {
    struct zovn_queue from[ZOVN_MOST_PORTS];
    struct zovn_set sources; /* those with frames */
    uint32_t turn; /* the source that has it */
    uint64_t bytes;
    uint64_t credit; /* the same of the class among those with weights */
};

/* What may be closed by itself at a destination: a class where its port tells of each, else all. */
struct zovn_lane {
    bool blocked, stalled;
    uint64_t blocked_since_ns, blocked_until_ns;
};

struct zovn_member {
    /* what other threads read, too: it changes while none is in a step */
    struct zovn_port *port;
    struct zovn_slot *slots;
    struct zovn_parked *parked;
    struct zovn_channel *passed, *ends; /* to each part, and from it; NULL: there is one part */
    uint32_t part; /* whose thread has it */
    bool running;
    struct zovn_port_settings settings;
    _Alignas(ZOVN_LINE) struct zovn_counters counters; /* from here on its thread's alone */
    bool draining; /* no new heads are peeked */
    bool waits_alone; /* for a moment in which no thread is in a step */
    /* as a source */
    uint32_t parked_count; /* frames, not copies */
    uint64_t oldest_ns; /* while parking is full, no parked frame is older */
    uint16_t heads[ZOVN_BATCH]; /* peeked; from `heads_at` on not classified yet */
    struct zovn_segment
        wholes[ZOVN_BATCH]; /* those that lie in one piece, if the port finds them */
    uint32_t heads_at, heads_end;
    struct zovn_recall learned, found; /* of its last frame: sender, and destination */
    uint64_t clock_ns; /* of addresses, when they were recalled last */
    struct zovn_like likes[ZOVN_LIKES];
    /* as a destination */
    struct zovn_class_queues queues[ZOVN_CLASSES];
    uint32_t classes; /* those with frames, as bits */
    uint32_t class_turn; /* of those with weights */
    bool took; /* any frame in its last round */
    struct zovn_lane lanes[ZOVN_CLASSES]; /* only the first, if none is closed by itself */
    struct zovn_pace pace;
};

static inline uint32_t zovn_lanes(const struct zovn_member *member) {
    return member->port->class_room ? ZOVN_CLASSES : 1;
}

/* Return the number of a class's lane. */
static inline uint32_t zovn_lane_of(const struct zovn_member *member, uint32_t class) {
    return member->port->class_room ? class : 0;
}

/* What one thread has besides its ports. */
struct zovn_part {
    _Alignas(ZOVN_LINE) uint64_t now_ns; /* of its last step */
    uint64_t clock_ns; /* of addresses, for this step */
    uint64_t random; /* never 0 */
    uint32_t shown; /* the parts that this step has shown something, as bits */
    bool backwards; /* from the last one on */
    uint32_t first_served; /* the member at which the bound of costly ports ended */
    uint8_t order[ZOVN_MOST_PORTS]; /* in which members are classified; up to `end` all of them */
};

struct zovn_switch {
    struct zovn_settings settings;
    struct zovn_addresses addresses;
    struct zovn_member *members[ZOVN_MOST_PORTS];
    uint32_t end; /* of the members; there may be gaps */
    uint32_t strict; /* classes without a weight, as bits */
    bool lossy; /* any class is */
    bool alone; /* no thread is in a step */
    struct zovn_part parts[ZOVN_MOST_THREADS];
    _Alignas(ZOVN_LINE) _Atomic uint64_t clock_ns; /* the first part's: addresses age by it */
    atomic_bool wants_alone; /* some member does */
};

/* Return the clock of the thread that has a port. */
static inline uint64_t zovn_now(const struct zovn_switch *vswitch, uint32_t port) {
    return vswitch->parts[vswitch->members[port]->part].now_ns;
}

#endif
