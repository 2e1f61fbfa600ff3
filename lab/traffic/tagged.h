/* Whole frames from an interface, with the VLAN tag that the kernel takes out of them. */
#ifndef LAB_TRAFFIC_TAGGED_H
#define LAB_TRAFFIC_TAGGED_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 9216
#define TAG_BYTES 4

/* Room for a frame, and for its tag before it. */
struct tagged_room {
    char bytes[TAG_BYTES + FRAME_MAX];
};

/* Return a socket of an interface that keeps tags and instants of frames, with a large buffer. */
int tagged_socket(const char *interface);
/* Receive a frame, and how long it has waited for us; return its begin, or NULL for none. A length
 * above FRAME_MAX: it is cut off. */
char *tagged_receive_late(int in, struct tagged_room *room, size_t *length, uint64_t *waited_ns);
/* Return how many frames the kernel dropped before us since the last call. */
uint64_t tagged_missed(int in);

#endif
