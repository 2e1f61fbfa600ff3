/* Words of 16 bits in the order of the network. */
#ifndef ZOVN_SWITCH_WORDS_H
#define ZOVN_SWITCH_WORDS_H

#include <stdint.h>

static inline uint32_t zovn_word_at(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

/* Write the low 16 bits. */
static inline void zovn_set_word(uint8_t *bytes, uint32_t word) {
    bytes[0] = (uint8_t)(word >> 8);
    bytes[1] = (uint8_t)word;
}

#endif
