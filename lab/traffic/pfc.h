/* PFC frames (802.1Qbb) and the pauses that they ask for; decisions only, without sockets and clocks. */
#ifndef LAB_TRAFFIC_PFC_H
#define LAB_TRAFFIC_PFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLASSES 8
#define ADDRESS_BYTES 6
#define PFC_FRAME_BYTES 60 /* the shortest frame of Ethernet, without its checksum */

/* What a frame says: the classes of the vector, and for each its time in quanta (0 resumes it). */
struct pfc {
    unsigned vector;
    uint16_t quanta[CLASSES];
};

void pfc_write(const struct pfc *pfc, const char *source, char frame[PFC_FRAME_BYTES]);
bool pfc_read(const char *frame, size_t length, struct pfc *pfc);

/* Return how long so many quanta of 512 bit times last. */
uint64_t pfc_ns(uint64_t quanta, uint64_t rate_bps);

/* Return whether a switch passes a frame to all ports: its destination is a group, and not one that
 * no bridge forwards. */
bool is_to_all(const char *frame);

/* Return the class of a frame: its priority if it has a VLAN tag, else 0. */
unsigned class_of(const char *frame, size_t length);

#endif
