/* A physical switch of several ports, with finite buffers, lossy or lossless by class.
 *
 * It has neither sockets nor a clock: frames and instants come from the caller, in order of time.
 * Each port is a line of its own rate and delay. A frame is in the switch when its delay is over.
 *
 * A lossy class drops at a full queue of the output. A lossless one never does: each input has room
 * of its own for each class, and the switch pauses its sender by PFC before that is full. A frame
 * that finds no room there was not held back in time, and is dropped.
 */
#ifndef LAB_TRAFFIC_STAR_H
#define LAB_TRAFFIC_STAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pfc.h"

#define STAR_PORTS 64
#define STAR_ADDRESSES 1024

struct star;

struct star_settings {
    size_t ports;
    uint64_t frames;       /* held at most, by all ports */
    uint64_t lossless;     /* classes, as bits */
    uint64_t buffer_bytes; /* for each class of an output if it is lossy, of an input otherwise */
    uint64_t xoff_bytes, xon_bytes;
    uint64_t quanta; /* of a pause; it is renewed when half of it is over */
};

/* All members are uint64_t: Python reads them by their place. */
struct star_counts {
    uint64_t packets_in, bytes_in, packets, bytes;
    uint64_t unknown; /* no other port has the address */
    uint64_t floods;  /* frames to all others, of which copies were made */
    uint64_t copies;
    uint64_t missed;  /* frames for which the program was too slow */
    uint64_t refused; /* frames that the interface did not take */
    uint64_t latest_ns;
    uint64_t dropped[CLASSES];    /* at this output: its queue was full */
    uint64_t overflowed[CLASSES]; /* at this input: the pause came too late */
    uint64_t most_bytes[CLASSES]; /* of this input's lossless frames in the switch */
    uint64_t xoff_sent[CLASSES], xon_sent[CLASSES];
    uint64_t xoff_received[CLASSES], xon_received[CLASSES];
    uint64_t paused_ns[CLASSES]; /* for which the peer has stopped this output */
};

struct star *star_new(const struct star_settings *settings);
void star_free(struct star *star);
/* Set the line of a port, and the source address of its PFC frames. */
void star_line(struct star *star, size_t port, uint64_t rate_bps, uint64_t delay_ns,
               const char *address);
/* Enter an address; return false if there is no room. */
bool star_enter(struct star *star, const char *address, size_t port);

/* A frame begins its way to the switch. */
void star_arrive(struct star *star, size_t port, const char *frame, size_t length, uint64_t now_ns);
/* Do all that is due until now. */
void star_run(struct star *star, uint64_t now_ns);
/* Return when there is something to do next if no frame comes. */
uint64_t star_due_ns(const struct star *star);

/* Return a frame that is at the other end of a port's line, or NULL. */
const char *star_departure(const struct star *star, size_t port, uint64_t now_ns, size_t *length);
/* Remove that frame; `taken` tells whether the interface took it. */
void star_sent(struct star *star, size_t port, bool taken, uint64_t now_ns);

struct star_counts *star_counts(struct star *star, size_t port);
/* Return how many bytes wait for an output. */
uint64_t star_held_bytes(const struct star *star, size_t port);

#endif
