/* A device's rings and memory, as librte_vhost knows them. */
#ifndef ZOVN_VHOST_RINGS_H
#define ZOVN_VHOST_RINGS_H

#include "ports/ring_port.h"
#include "rings/memory.h"
#include "vhost/record.h"

enum {
    ZOVN_RECEIVE = 0, /* by their numbers in a pair */
    ZOVN_TRANSMIT = 1,
    ZOVN_RINGS = 2,
    ZOVN_MOST_RINGS = ZOVN_RINGS * ZOVN_MOST_PAIRS
};

/* The records of what is taken that a front end keeps, as its last message about them said: how many
 * there are, one for each ring from the first on, and for how many entries. What is written there is the
 * front end's. */
struct zovn_recorded {
    uint32_t rings, entries;
};

/* Copies of the eventfds by which the guest is notified, and notifies; -1: none. */
struct zovn_vhost_files {
    int call, kick;
    bool refused; /* there was a file that is no eventfd */
    int error;    /* why one could not be copied; 0: all could */
};

/* Fill in the memory of a device, which is guarded from then on, and what its features say. Return
 * NULL, or the problem. */
const char *zovn_vhost_device(int device, struct zovn_memory *memory,
                              struct zovn_ring_settings *settings);

/* Fill in the rings of a pair; the record of what is taken, if the front end keeps it, is guarded, too.
 * Return NULL, or the problem. */
const char *zovn_vhost_pair(int device, uint32_t pair, const struct zovn_recorded *recorded,
                            struct zovn_memory *memory, struct zovn_ring_pair *rings);

/* Say in which file a ring lies, and where; return false if that is not known. */
bool zovn_vhost_about(int device, const struct zovn_split_ring *ring, struct zovn_record_of *about);

/* Copy a ring's files. */
struct zovn_vhost_files zovn_vhost_files(int device, uint32_t ring);

#endif
