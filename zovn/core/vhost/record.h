/* A record of what is held, in a file next to the port's socket: for front ends that keep none.
 *
 * QEMU keeps one for disks, but not for networks. The file lasts as long as the host runs, where
 * sockets do: in /run. It is used again for the same ring in the same memory, unless others gave chains back
 * meanwhile. */
#ifndef ZOVN_VHOST_RECORD_H
#define ZOVN_VHOST_RECORD_H

#include <stddef.h>

#include "forward/options.h"
#include "rings/inflight.h"

/* What a record is about. */
struct zovn_record_of {
    uint64_t device, inode; /* of the file that is the guest's memory */
    uint64_t offset;        /* of the ring's descriptors in it */
    uint64_t size;          /* entries of the ring */
};

struct zovn_record {
    void *memory; /* NULL: not open */
    size_t bytes;
};

struct zovn_record_path {
    char text[ZOVN_PATH_BYTES + sizeof ".held0000000000"];
};

/* Return where the record of a pair of rings of the port with this socket is. */
struct zovn_record_path zovn_record_path(const char *socket, uint32_t pair);

/* Open this record; empty, if it was about another ring, or the ring went on without this program.
 * Return NULL with errno if the file cannot be written. */
struct zovn_inflight *zovn_record_open(struct zovn_record *record, const char *socket,
                                       uint32_t pair, const struct zovn_record_of *about,
                                       const struct zovn_split_ring *ring);

void zovn_record_close(struct zovn_record *record);

/* Remove the files of all pairs: the port goes. */
void zovn_record_remove(const char *socket, uint32_t pairs);

#endif
