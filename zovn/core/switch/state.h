/* The switch's structures, for the files that implement it.
 *
 * A queue has the frames of one source and class to one destination, as references: a reference
 * is a head of the source's ring, or one copy of a frame that the source floods, which is parked.
 * The links of a queue are in the source's slots and parking, so queues need no memory. */
#ifndef ZOVN_SWITCH_STATE_H
#define ZOVN_SWITCH_STATE_H

#include "switch/addresses.h"
#include "switch/facts.h"
#include "switch/pace.h"
#include "switch/set.h"

#define ZOVN_NONE UINT32_MAX
enum { ZOVN_BATCH = 64, ZOVN_QUANTUM = 3028 }; /* new heads of a port in a step; two long frames */

/* A frame in its sender's ring. */
struct zovn_slot {
    struct zovn_facts facts;
    struct zovn_segment whole; /* where it lies, if that is one place; else without bytes */
    uint32_t next;
    bool held;
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
    struct zovn_port *port;
    struct zovn_port_settings settings;
    struct zovn_counters counters;
    bool running;
    bool draining; /* no new heads are peeked */
    /* as a source */
    struct zovn_slot *slots;
    struct zovn_parked *parked;
    uint32_t parked_count; /* frames, not copies */
    uint64_t oldest_ns; /* while parking is full, no parked frame is older */
    uint16_t heads[ZOVN_BATCH]; /* peeked; from `heads_at` on not classified yet */
    uint32_t heads_at, heads_end;
    struct zovn_recall learned, found; /* of its last frame: sender, and destination */
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

struct zovn_switch {
    struct zovn_settings settings;
    struct zovn_addresses addresses;
    struct zovn_member *members[ZOVN_MOST_PORTS];
    uint32_t end; /* of the members; there may be gaps */
    uint32_t strict; /* classes without a weight, as bits */
    bool lossy; /* any class is */
    uint8_t order[ZOVN_MOST_PORTS]; /* in which members are classified; up to `end` all of them */
    bool backwards; /* from the last one on */
    uint32_t first_served; /* the member at which the bound of costly ports ended */
    uint64_t random; /* never 0 */
    uint64_t now_ns;
};

#endif
