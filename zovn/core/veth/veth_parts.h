/* The structure of a port to a veth, for the files that implement it. */
#ifndef ZOVN_VETH_VETH_PARTS_H
#define ZOVN_VETH_VETH_PARTS_H

#include "ports/port.h"
#include "veth/frames.h"
#include "veth/interface.h"
#include "veth/napi.h"
#include "veth/program.h"

struct zovn_veth {
    struct zovn_port port;
    struct zovn_interface interface;
    struct zovn_napi_control control;
    struct zovn_program program;
    struct zovn_frames frames;
    struct zovn_segment held[ZOVN_HEADS]; /* by head */
    uint32_t most; /* bytes of a frame */
    uint32_t napi;
    int poller, changes; /* sockets: the NAPI's, and for messages about interfaces */
    bool prepared; /* the interface; closing restores it */
    bool runs;     /* the poller knows the NAPI */
    bool ending;   /* the port is about to be freed */
    uint32_t peeks;
    uint64_t dropped_before; /* by the kernel, at the interface */
};

/* Open everything that a port needs; NULL with the reason in `problem`. */
struct zovn_veth *zovn_veth_open(const char *interface, char *problem);
void zovn_veth_close(struct zovn_veth *veth);

/* Look whether the interface was removed, or has a new NAPI since it was down. */
void zovn_veth_look(struct zovn_veth *veth);

#endif
