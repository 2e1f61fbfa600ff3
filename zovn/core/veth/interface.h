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
};

/* Return 0 or a negative errno; -ENODEV: there is none; -ENOTSUP: it is no veth. */
int zovn_interface_look_up(struct zovn_interface *interface, const char *name);

/* Join received segments (GRO) or not, which also makes or deletes its NAPI. Return 0 or a negative errno. */
int zovn_interface_join(const struct zovn_interface *interface, bool joins);

/* Prepare an interface. It gets a queue, without which the kernel drops what meets a full ring instead
 * of refusing it. It gets no segmentation (TSO), with which frames from here would bypass the container's ring; and
 * no GRO, so that an XDP program brings a NAPI that is new: an old one may sleep for long.
 *
 * The queue's handle says what was on: it is added before, and so restoring works after a crash.
 * Return 0 or a negative errno; -EEXIST: it has another queue. */
int zovn_interface_prepare(const struct zovn_interface *interface);

/* Return whether that was done and not undone. */
bool zovn_interface_is_prepared(const struct zovn_interface *interface);

/* Undo that, if it was done. */
void zovn_interface_restore(const struct zovn_interface *interface);

#endif
