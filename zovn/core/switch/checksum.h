/* The Internet checksum (RFC 1071) of bytes where they lie. */
#ifndef ZOVN_SWITCH_CHECKSUM_H
#define ZOVN_SWITCH_CHECKSUM_H

#include "ports/port.h"

/* Return the sum of a frame's bytes from an offset on, in 16 bits. */
uint16_t zovn_checksum_sum(const struct zovn_frame *frame, uint32_t from);

/* Return the sum of bytes, in 16 bits. */
uint16_t zovn_checksum_sum_of(const uint8_t *bytes, uint32_t length);

/* Return the sum of two. */
static inline uint16_t zovn_checksum_add(uint16_t a, uint16_t b) {
    uint32_t sum = (uint32_t)a + b;
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* Return the checksum for a sum. It is never 0, which to UDP means that there is none; 0xffff is the
 * same number. */
static inline uint16_t zovn_checksum_of(uint16_t sum) {
    return sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

#endif
