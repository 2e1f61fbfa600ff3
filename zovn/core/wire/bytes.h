/* Numbers in network byte order. */
#ifndef ZOVN_WIRE_BYTES_H
#define ZOVN_WIRE_BYTES_H

#include <stdint.h>

static inline uint16_t zovn_word_at(const uint8_t *bytes) {
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline void zovn_set_word(uint8_t *bytes, uint32_t word) {
    bytes[0] = (uint8_t)(word >> 8);
    bytes[1] = (uint8_t)word;
}

#endif
