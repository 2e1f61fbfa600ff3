/* Guests of the benchmark: rings in this process, full at any time. */
#ifndef ZOVN_TOOLS_BENCH_GUEST_H
#define ZOVN_TOOLS_BENCH_GUEST_H

#include "ports/ring_port.h"

enum { BENCH_HEADER = 12, BENCH_BUFFER_BYTES = 2048 };

/* What senders leave to others. */
enum left { NOTHING, CHECKSUMS, SEGMENTS, WHOLE };

/* One of a guest's rings, as its driver knows it. */
struct bench_queue {
    struct zovn_descriptor *descriptors;
    struct zovn_avail *avail;
    struct zovn_used *used;
    uint16_t seen;
};

struct bench_guest {
    struct bench_queue transmit, receive;
    struct zovn_memory memory;
    uint8_t *buffers; /* of the transmit ring, then of the receive ring */
};

/* Return memory that is zero; or end the program. */
void *bench_room(size_t bytes);

/* Return a port of a guest that sends frames of so many bytes to all others, of `ports` in all. */
struct zovn_port *bench_guest_port(struct bench_guest *guest, uint32_t self, uint32_t ports,
                                   uint32_t bytes, enum left left);

/* Make available again what came back. */
void bench_guest_refill(struct bench_guest *guest);

#endif
