/* The structure of a wire port, for the files that implement it. */
#ifndef ZOVN_WIRE_WIRE_PARTS_H
#define ZOVN_WIRE_WIRE_PARTS_H

#include "ports/port.h"
#include "wire/inbound.h"
#include "wire/link.h"
#include "wire/locations.h"
#include "wire/neighbours.h"
#include "wire/outbound.h"

struct zovn_wire_settings;

struct zovn_wire {
    struct zovn_port port;
    struct zovn_link link;
    struct zovn_inbound inbound;
    struct zovn_outbound outbound;
    struct zovn_pfc_sender sender;
    struct zovn_pfc_receiver receiver;
    struct zovn_neighbours neighbours;
    struct zovn_locations *locations;
    struct zovn_port_counts counts;
    uint32_t vni, most; /* bytes of an inner frame */
    uint64_t ring_bytes; /* that wait below a socket of either end, which no pause stops */
    uint8_t class;
    bool asked, read; /* whether the clock is kept; whether this step has read the socket */
    bool congested;   /* the interface took no frame */
    bool unsent;      /* nor a pause that is due */
    bool ending;      /* the port is about to be freed */
    uint64_t lost;    /* frames that were put, and that the interface never takes */
    uint64_t seen_ns, armed_ns;
    int wake, clock;
};

uint64_t zovn_wire_now(void);

/* Receive what has come: frames to hold, pauses, and addresses. */
void zovn_wire_receive(struct zovn_wire *wire, uint64_t now_ns);

/* Make the frames of a tunnel from one that is to leave. */
enum zovn_put_result zovn_wire_put(struct zovn_wire *wire, const struct zovn_frame *frame);

/* Send pauses, questions, and what the line and the peer take. */
void zovn_wire_send(struct zovn_wire *wire, uint64_t now_ns);

/* Set how long an inner frame may be by the interface's MTU. */
void zovn_wire_limit(struct zovn_wire *wire, uint32_t mtu);

/* Have the clock end a sleep when something is due. */
void zovn_wire_arm(struct zovn_wire *wire, uint64_t now_ns);

struct zovn_wire *zovn_wire_open(const struct zovn_wire_settings *settings, char *problem);
void zovn_wire_close(struct zovn_wire *wire);

#endif
