/* What the switch needs of a port: where frames come from, and go to.
 *
 * A frame is known by its head, a number below `heads` that names its place in the peer's ring until
 * it is completed. Frames stay there: the switch peeks, and completes them in any order. */
#ifndef ZOVN_PORTS_PORT_H
#define ZOVN_PORTS_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "rings/frame.h"
#include "rings/split_ring.h"

/* Bits of what a port may leave to others (`sends`), and of what it accepts unfinished (`takes`). */
enum {
    ZOVN_CHECKSUM = 1,
    ZOVN_TCP4 = 2, /* segmentation */
    ZOVN_TCP6 = 4,
    ZOVN_UDP_FRAGMENTS = 8,
    ZOVN_UDP_SEGMENTS = 16,
    ZOVN_ECN = 32, /* segmentation of TCP with ECN */
};

enum zovn_frame_result { ZOVN_FRAME_OK, ZOVN_FRAME_MALFORMED, ZOVN_FRAME_TOO_LONG };
enum zovn_put_result {
    ZOVN_PUT_DONE,
    ZOVN_PUT_NO_ROOM,
    ZOVN_PUT_TOO_LONG,
    ZOVN_PUT_NO_LOCATION,
    ZOVN_PUT_REFUSED
};

/* Bytes of Ethernet's header with a tag. */
enum { ZOVN_HEADER = 18 };

/* A frame in one piece, which is no shorter than that, and of which nothing is left to do. */
struct zovn_plain {
    const uint8_t *header; /* the first bytes, whatever lies there now */
    const uint8_t *bytes;
    uint32_t length;
};

struct zovn_port;

struct zovn_port_calls {
    /* Report up to `most` new heads, each once and in order. The frames stay where they are. */
    uint32_t (*peek)(struct zovn_port *port, uint16_t *heads, uint32_t most);
    /* Find a frame's bytes. They stay where they are until it is completed, but may change at any
     * time, and so may what is found the next time of a frame in several pieces. */
    enum zovn_frame_result (*frame)(struct zovn_port *port, uint16_t head,
                                    struct zovn_frame *frame);
    /* Copy a frame to the peer; `frame->class` is its class. A frame that can never fit is too long;
     * only a lossy port refuses one. A port with `class_room` has room, and the class is open. */
    enum zovn_put_result (*put)(struct zovn_port *port, struct zovn_frame *frame);
    /* Return whether the peer has any room. */
    bool (*room)(struct zovn_port *port);
    /* Give a frame back to its sender. */
    void (*complete)(struct zovn_port *port, uint16_t head);
    /* Show the peer what was put and completed, and notify it once if it wants that. */
    void (*publish)(struct zovn_port *port);
    void (*free)(struct zovn_port *port);
};

/* What a port counts by itself of the line behind it; 0 of ports without one. */
struct zovn_port_counts {
    uint64_t beyond;  /* frames that came though the buffer of their class was full, dropped */
    uint64_t unsound; /* frames that came, but are not sound, dropped */
    uint64_t overruns; /* frames that the kernel dropped, or that were put and never sent */
    uint64_t pauses_sent, pauses; /* frames of PFC: sent, and received */
    uint64_t paused_ns;           /* in which any class was paused by the peer */
};

struct zovn_port {
    const struct zovn_port_calls *calls;
    uint32_t heads;
    uint32_t sends;
    uint32_t takes;
    bool costly; /* each frame that is put is a system call: such ports share a bound in a step */
    enum zovn_fault fault; /* set by any call; the switch then stops the port */
    /* Show the peer what was put; NULL: `publish` does. It is called for all ports before `publish`
     * is, so that no sender has a frame back that its destination does not have. */
    void (*show)(struct zovn_port *port);
    /* Return whether a class is open: whether the peer takes its frames when there is `room`, which
     * all classes share. NULL: each is open. A closed class holds up no other. */
    bool (*class_room)(struct zovn_port *port, uint32_t class);
    /* Find where new frames lie that are in one piece; others get no bytes. Such a frame is not shorter than
     * ZOVN_HEADER, and not longer than 65,535 bytes. Before it lie `header_bytes`, which begin with what its
     * sender leaves to others. The port knows no class of it. NULL: `frame` finds each. */
    void (*find_wholes)(struct zovn_port *port, const uint16_t *heads, uint32_t count,
                        struct zovn_segment *wholes);
    uint32_t header_bytes;
    /* Copy plain frames to the peer, in order, as `put` does; return how many. Of the next one `put` says
     * what becomes of it. NULL: each frame goes by `put`. */
    uint32_t (*put_plain)(struct zovn_port *port, const struct zovn_plain *frames, uint32_t count);
    /* Return whether it would copy a frame of so many bytes now. */
    bool (*plain_room)(struct zovn_port *port, uint32_t length);
    /* Give many frames back; NULL: `complete` gives back each. */
    void (*complete_all)(struct zovn_port *port, const uint16_t *heads, uint32_t count);
    /* Tell what the port counts by itself; NULL: nothing. */
    void (*count)(const struct zovn_port *port, struct zovn_port_counts *counts);
};

#endif
