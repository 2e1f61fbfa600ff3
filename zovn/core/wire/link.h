/* The interface that a wire port has: frames by a packet socket, with their outer tags. */
#ifndef ZOVN_WIRE_LINK_H
#define ZOVN_WIRE_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/vxlan.h"

enum { ZOVN_WIRE_PROBLEM = 256, ZOVN_LINK_SPARE = 4 };

struct zovn_link {
    char name[IF_NAMESIZE];
    int file;     /* the packet socket */
    int control;  /* one that only sends: what must not wait behind frames */
    int reserved; /* the UDP port of VXLAN: the kernel then refuses no datagram */
    uint32_t index, mtu;
    struct zovn_endpoint self;
    uint64_t overruns;
};

/* Return what an interface lacks for that, as words after its name, and may still come; or NULL. */
const char *zovn_link_missing(const char *interface, const uint8_t address[4]);

/* Open an interface with one of its addresses; return false with the reason in `problem`. */
bool zovn_link_open(struct zovn_link *link, const char *interface, const uint8_t address[4],
                    char *problem);
void zovn_link_close(struct zovn_link *link);

/* What came. */
struct zovn_arrival {
    uint8_t *bytes;
    uint32_t length;
    bool whole; /* it fitted, and its checksums are there */
};

/* Receive a frame into `room`, of which the first ZOVN_LINK_SPARE bytes are for a tag. Return 1; 0 if
 * there is none; or a negative errno. */
int zovn_link_receive(struct zovn_link *link, uint8_t *room, uint32_t size,
                      struct zovn_arrival *arrival);

/* Have frames of at most `most_bytes` wait below the socket, in queues of the kernel or in the interface,
 * up to `bytes` in all, as they take time on the line. Return how many may wait there: the kernel gives
 * every socket some room. Return 0 if it refuses. */
uint64_t zovn_link_bound(struct zovn_link *link, uint64_t bytes, uint64_t most_bytes);

/* Return 0 or a negative errno; the frame is then not sent. What is sent by the second, such as a pause,
 * is sent even where frames wait. */
int zovn_link_send(struct zovn_link *link, const uint8_t *bytes, uint32_t length);
int zovn_link_send_control(struct zovn_link *link, const uint8_t *bytes, uint32_t length);

/* Return the MTU that the interface has now, whatever its name is; 0: it is not known. The kernel may
 * have this wait. */
uint32_t zovn_link_mtu(const struct zovn_link *link);

/* Return whether the interface was removed. */
bool zovn_link_gone(const struct zovn_link *link);

/* Add up what the kernel dropped, since its socket was full. */
void zovn_link_count(struct zovn_link *link);

#endif
