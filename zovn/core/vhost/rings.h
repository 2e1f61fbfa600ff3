/* A device's rings and memory, as librte_vhost knows them. */
#ifndef ZOVN_VHOST_RINGS_H
#define ZOVN_VHOST_RINGS_H

#include "ports/ring_port.h"
#include "rings/memory.h"
#include "vhost/record.h"

enum { ZOVN_RECEIVE = 0, ZOVN_TRANSMIT = 1, ZOVN_RINGS = 2 }; /* by their numbers */

/* Copies of the eventfds by which the guest is notified, and notifies; -1: none. */
struct zovn_vhost_files {
    int call, kick;
    bool refused; /* there was a file that is no eventfd */
};

/* Fill in the memory of a device and the rings of a port; return NULL, or the problem. */
const char *zovn_vhost_rings(int device, struct zovn_memory *memory,
                             struct zovn_ring_settings *settings);

/* Guard the memory of a device, and the record of a ring in it; a fault sets `*lost`. Return whether
 * there was room. */
bool zovn_vhost_guard(int device, const struct zovn_split_ring *ring, bool *lost);

/* Say in which file a ring lies, and where; return false if that is not known. */
bool zovn_vhost_about(int device, const struct zovn_split_ring *ring, struct zovn_record_of *about);

/* Copy a ring's files. */
struct zovn_vhost_files zovn_vhost_files(int device, uint32_t ring);

#endif
