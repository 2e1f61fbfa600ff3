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

/* Join received segments or not, which also makes or deletes its NAPI. Return 0 or a negative errno. */
int zovn_interface_join(const struct zovn_interface *interface, bool joins);

/* Prepare an interface: a queue, without which the kernel drops what meets a full ring instead of refusing
 * it; and no segmentation (TSO), with which what comes from here would not pass the container's ring at all.
 * The queue's handle says whether segmentation was on, so that it can be restored after a crash: it is
 * added before. Return 0 or a negative errno; -EEXIST: it has another queue. */
int zovn_interface_prepare(const struct zovn_interface *interface);

/* Undo that, as far as it was done. */
void zovn_interface_restore(const struct zovn_interface *interface);

#endif
