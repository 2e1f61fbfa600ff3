/* The host's end of a veth: what it is, and what the port changes of it. */
#ifndef ZOVN_VETH_INTERFACE_H
#define ZOVN_VETH_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct zovn_interface {
    char name[IF_NAMESIZE];
    uint32_t index;
    uint32_t mtu;
    bool up;
    bool joins; /* received segments (GRO): its NAPI exists without an XDP program */
};

/* Return 0 or a negative errno; -ENODEV: there is none; -ENOTSUP: it is no veth. */
int zovn_interface_look_up(struct zovn_interface *interface, const char *name);

/* Give it a new NAPI, if one exists that another switch may have told to sleep. Return 0 or a negative errno. */
int zovn_interface_refresh(const struct zovn_interface *interface);

/* Add a queue to it, if it has none: without one the kernel drops what meets a full ring
 * instead of refusing it. Return 0 or a negative errno. */
int zovn_interface_add_queue(const struct zovn_interface *interface);

/* Remove the queue that `add` added, and no other. Return 0 or a negative errno. */
int zovn_interface_remove_queue(const struct zovn_interface *interface);

#endif
