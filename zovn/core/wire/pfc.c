/* Frames of PFC, and the two sides' decisions. */
#include "wire/pfc.h"

#include <string.h>

#include "wire/bytes.h"

enum { TYPE_AT = 12, OPCODE_AT = 14, ENABLED_AT = 16, QUANTA_AT = 18, NEEDED = 34 };
enum { MAC_CONTROL = 0x8808, PFC_OPCODE = 0x0101, QUANTUM_BITS = 512 };

#define SECOND_NS UINT64_C(1000000000)

static const uint8_t TO[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01};

void zovn_pfc_write(uint8_t frame[ZOVN_PFC_BYTES], const uint8_t source[6],
                    const struct zovn_pfc *pfc) {
    memset(frame, 0, ZOVN_PFC_BYTES);
    memcpy(frame, TO, sizeof TO);
    memcpy(frame + sizeof TO, source, 6);
    zovn_set_word(frame + TYPE_AT, MAC_CONTROL);
    zovn_set_word(frame + OPCODE_AT, PFC_OPCODE);
    zovn_set_word(frame + ENABLED_AT, pfc->enabled);
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (pfc->enabled >> i & 1)
            zovn_set_word(frame + QUANTA_AT + 2 * i, pfc->quanta[i]);
}

bool zovn_pfc_is_control(const uint8_t *bytes, uint32_t length) {
    return length >= OPCODE_AT && zovn_word_at(bytes + TYPE_AT) == MAC_CONTROL;
}

bool zovn_pfc_read(const uint8_t *bytes, uint32_t length, struct zovn_pfc *pfc) {
    if (length < NEEDED || !zovn_pfc_is_control(bytes, length) ||
        memcmp(bytes, TO, sizeof TO) != 0 || zovn_word_at(bytes + OPCODE_AT) != PFC_OPCODE)
        return false;
    *pfc = (struct zovn_pfc){.enabled = bytes[ENABLED_AT + 1]}; /* the other byte is reserved */
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (pfc->enabled >> i & 1)
            pfc->quanta[i] = zovn_word_at(bytes + QUANTA_AT + 2 * i);
    return true;
}

uint64_t zovn_pfc_quanta_ns(uint16_t quanta, uint64_t rate_bps) {
    return (uint64_t)quanta * QUANTUM_BITS * SECOND_NS / rate_bps;
}

/* Whether a class is to be paused from now on. */
static bool is_full(const struct zovn_pfc_sender *sender, uint64_t held, bool paused) {
    return held > (paused ? sender->xon_bytes : sender->xoff_bytes);
}

/* A frame that is sent anyway refreshes all pauses. */
bool zovn_pfc_due(const struct zovn_pfc_sender *sender, const uint64_t held[ZOVN_PFC_CLASSES],
                  uint64_t now_ns, struct zovn_pfc *pfc) {
    bool due = false;
    *pfc = (struct zovn_pfc){0};
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++) {
        bool paused = sender->paused >> i & 1;
        bool full = sender->classes >> i & 1 && is_full(sender, held[i], paused);
        if (!paused && !full)
            continue;
        pfc->enabled |= (uint8_t)(1u << i);
        pfc->quanta[i] = full ? ZOVN_PFC_MOST_QUANTA : 0;
        due |= paused != full || now_ns >= sender->refresh_ns[i];
    }
    return due;
}

/* Half of the time is left for a frame that is lost or late. */
void zovn_pfc_sent(struct zovn_pfc_sender *sender, const struct zovn_pfc *pfc, uint64_t now_ns) {
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++) {
        if (!(pfc->enabled >> i & 1))
            continue;
        sender->paused &= (uint8_t)~(1u << i);
        sender->paused |= (uint8_t)((pfc->quanta[i] > 0) << i);
        sender->refresh_ns[i] = now_ns + zovn_pfc_quanta_ns(pfc->quanta[i], sender->rate_bps) / 2;
    }
}

uint64_t zovn_pfc_refresh(const struct zovn_pfc_sender *sender) {
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (sender->paused >> i & 1 && sender->refresh_ns[i] < next_ns)
            next_ns = sender->refresh_ns[i];
    return next_ns;
}

void zovn_pfc_obey(struct zovn_pfc_receiver *receiver, const struct zovn_pfc *pfc,
                   uint64_t now_ns) {
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (pfc->enabled >> i & 1)
            receiver->until_ns[i] = now_ns + zovn_pfc_quanta_ns(pfc->quanta[i], receiver->rate_bps);
}

uint8_t zovn_pfc_paused(const struct zovn_pfc_receiver *receiver, uint64_t now_ns) {
    uint8_t paused = 0;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        paused |= (uint8_t)((receiver->until_ns[i] > now_ns) << i);
    return paused;
}

uint64_t zovn_pfc_expiry(const struct zovn_pfc_receiver *receiver, uint64_t now_ns) {
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < ZOVN_PFC_CLASSES; i++)
        if (receiver->until_ns[i] > now_ns && receiver->until_ns[i] < next_ns)
            next_ns = receiver->until_ns[i];
    return next_ns;
}
