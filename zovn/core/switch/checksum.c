/* Sums in the machine's order of bytes, which is turned once at the end. */
#include "switch/checksum.h"

#include <arpa/inet.h>
#include <string.h>

static uint16_t fold(uint64_t sum) {
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

typedef uint64_t lanes __attribute__((vector_size(16)));

/* Words of four bytes are the halves of the lanes: no carry is lost in less than 2^32 turns. */
static uint64_t wide_sum(const uint8_t *bytes, uint32_t turns) {
    lanes low = {0}, high = {0}, words;
    for (uint32_t i = 0; i < turns; i++) {
        memcpy(&words, bytes + i * sizeof words, sizeof words);
        low += words & UINT32_MAX;
        high += words >> 32;
    }
    low += high;
    return low[0] + low[1];
}

static uint16_t native_sum(const uint8_t *bytes, uint32_t length) {
    uint32_t at = length & ~15u, word;
    uint64_t sum = wide_sum(bytes, length / 16);
    for (; at + sizeof word <= length; at += (uint32_t)sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        sum += word;
    }
    word = 0;
    memcpy(&word, bytes + at, length - at);
    return fold(sum + word);
}

static uint16_t swapped(uint16_t sum) {
    return (uint16_t)(sum << 8 | sum >> 8);
}

uint16_t zovn_checksum_sum_of(const uint8_t *bytes, uint32_t length) {
    return ntohs(native_sum(bytes, length));
}

/* A part that begins at an odd place has its bytes in the other halves of the words. */
uint16_t zovn_checksum_sum(const struct zovn_frame *frame, uint32_t from) {
    uint64_t sum = 0;
    bool odd = false;
    for (uint32_t i = frame->first; i < frame->end; i++) {
        const struct zovn_segment *part = &frame->segments[i];
        uint32_t skipped = from < part->length ? from : part->length;
        uint32_t length = part->length - skipped;
        uint16_t own = native_sum(part->bytes + skipped, length);
        sum += odd ? swapped(own) : own;
        odd ^= length & 1;
        from -= skipped;
    }
    return ntohs(fold(sum));
}
