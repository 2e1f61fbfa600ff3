/* The hostile guest of the fuzzer: memory full of nonsense that looks like rings. */
#ifndef ZOVN_TOOLS_RING_FUZZ_H
#define ZOVN_TOOLS_RING_FUZZ_H

#include "ports/ring_port.h"

enum { FUZZ_SIZE = 16, FUZZ_TABLES = 4, FUZZ_BUFFER_BYTES = 4096, FUZZ_BUFFERS = 8 };

/* Each part is allocated by itself, so that the sanitizer sees each byte beyond it. */
struct hostile {
    uint64_t random;
    uint8_t number; /* 0 or 1 */
    struct zovn_descriptor *descriptors[2]; /* of the transmit and the receive ring */
    struct zovn_avail *avail[2];
    struct zovn_used *used[2];
    struct zovn_descriptor *tables; /* FUZZ_TABLES of FUZZ_SIZE */
    uint8_t *buffers;
    uint32_t out[2];  /* heads that the device has, as bits */
    uint16_t seen[2]; /* of the used ring */
    struct zovn_memory memory;
};

/* Where the guest has its memory: the buffers, then, after a gap, the tables. */
#define FUZZ_BUFFERS_AT UINT64_C(0x10000)
#define FUZZ_TABLES_AT UINT64_C(0x40000)

void hostile_begin(struct hostile *guest, uint32_t number, uint64_t seed);
void hostile_end(struct hostile *guest);

/* Return a port on its rings. */
struct zovn_port *hostile_port(struct hostile *guest);

/* Change one thing: a descriptor, a table, a frame's bytes, or what is available; or do what most
 * guests do. */
void hostile_act(struct hostile *guest);

#endif
