/* What a forwarding thread does again and again: a step of its part, and a sleep while nothing moves. */
#ifndef ZOVN_FORWARD_LOOP_H
#define ZOVN_FORWARD_LOOP_H

#include "forward/nap.h"
#include "forward/wake.h"
#include "switch/switch.h"

enum {
    ZOVN_WAKES = 16,
    ZOVN_MOST_ELAPSED_NS = 200000000, /* that count for the switch between two steps */
};

/* A port, and how to sleep until its peer does something. */
struct zovn_attachment {
    struct zovn_port *port;
    /* Have the peer notify, or not; NULL: it cannot, so that the port is polled. */
    void (*ask)(struct zovn_port *port, bool notify);
    int wakes[ZOVN_WAKES]; /* eventfds that become readable then; -1: none */
    uint32_t wake_count;
};

struct zovn_loop {
    struct zovn_switch *vswitch;
    uint32_t part;
    struct zovn_wake *wakes; /* of all parts */
    struct zovn_nap nap;
    uint64_t now_ns, read_ns;
    uint32_t idle; /* steps without a move */
    uint32_t polled; /* attached ports that are */
    bool asked; /* peers notify */
    bool overslept; /* the last sleep was ended by the bound that is a second net */
    uint64_t nap_ns; /* the last sleep, if nothing moved since; else 0 */
    struct zovn_attachment attached[ZOVN_MOST_PORTS];
};

/* Return false with errno; switch and wakes stay the caller's. */
bool zovn_loop_open(struct zovn_loop *loop, struct zovn_switch *vswitch, uint32_t part,
                    struct zovn_wake *wakes);
void zovn_loop_close(struct zovn_loop *loop);

/* Step the part; return whether something moved. */
bool zovn_loop_step(struct zovn_loop *loop);

/* After a step that moved nothing, rest if that is so for a while. What came before the peers were
 * asked to notify is found by a step, so there must be one between two calls. */
void zovn_loop_rest(struct zovn_loop *loop);

/* A port was added to the part at a place, or is about to be removed from there. */
void zovn_loop_attach(struct zovn_loop *loop, uint32_t place,
                      const struct zovn_attachment *attachment);
void zovn_loop_detach(struct zovn_loop *loop, uint32_t place);

/* Replace one of the files that wake. */
void zovn_loop_rewake(struct zovn_loop *loop, uint32_t place, uint32_t which, int file);

#endif
