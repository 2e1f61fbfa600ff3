/* PFC frames (802.1Qbb) and the pauses that they ask for; decisions only, without sockets and clocks. */
#include "pfc.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <string.h>

#define OPCODE 0x0101
#define PFC_BYTES 34 /* without padding */
#define QUANTUM_BITS 512
#define TYPE_AT (2 * ADDRESS_BYTES)
#define TAG_END (TYPE_AT + 4)

static const char TO_THE_NEIGHBOUR[] = "\x01\x80\xc2\x00\x00\x01"; /* no bridge forwards it */

static void put_word(char *frame, size_t at, unsigned value) {
    uint16_t word = htons((uint16_t)value);
    memcpy(frame + at, &word, sizeof word);
}

static uint16_t word_at(const char *frame, size_t at) {
    uint16_t word;
    memcpy(&word, frame + at, sizeof word);
    return ntohs(word);
}

void pfc_write(const struct pfc *pfc, const char *source, char frame[PFC_FRAME_BYTES]) {
    memset(frame, 0, PFC_FRAME_BYTES);
    memcpy(frame, TO_THE_NEIGHBOUR, ADDRESS_BYTES);
    memcpy(frame + ADDRESS_BYTES, source, ADDRESS_BYTES);
    put_word(frame, TYPE_AT, ETH_P_PAUSE);
    put_word(frame, TYPE_AT + 2, OPCODE);
    put_word(frame, TYPE_AT + 4, pfc->vector);
    for (size_t i = 0; i < CLASSES; i++) {
        put_word(frame, TYPE_AT + 6 + 2 * i, pfc->quanta[i]);
    }
}

bool pfc_read(const char *frame, size_t length, struct pfc *pfc) {
    if (length < PFC_BYTES || word_at(frame, TYPE_AT) != ETH_P_PAUSE ||
        word_at(frame, TYPE_AT + 2) != OPCODE) {
        return false;
    }
    pfc->vector = word_at(frame, TYPE_AT + 4) & ((1U << CLASSES) - 1);
    for (size_t i = 0; i < CLASSES; i++) {
        pfc->quanta[i] = word_at(frame, TYPE_AT + 6 + 2 * i);
    }
    return true;
}

uint64_t pfc_ns(uint64_t quanta, uint64_t rate_bps) {
    return quanta * QUANTUM_BITS * 1000000000 / rate_bps;
}

bool is_to_all(const char *frame) {
    bool group = frame[0] & 1;
    bool reserved = memcmp(frame, TO_THE_NEIGHBOUR, ADDRESS_BYTES - 1) == 0;
    return group && !(reserved && (unsigned char)frame[ADDRESS_BYTES - 1] < 16);
}

unsigned class_of(const char *frame, size_t length) {
    if (length < TAG_END) {
        return 0;
    }
    uint16_t type = word_at(frame, TYPE_AT);
    bool tagged = type == ETH_P_8021Q || type == ETH_P_8021AD;
    return tagged ? word_at(frame, TYPE_AT + 2) >> 13 : 0;
}
