/* Priority-based flow control (IEEE 802.1Qbb; 802.1Q, clause 36): its frames, and when to send which.
 *
 * Pure: time is a parameter in nanoseconds of any monotonic clock, rates are bits/s. */
#ifndef ZOVN_WIRE_PFC_H
#define ZOVN_WIRE_PFC_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum { ZOVN_PFC_BYTES = 60, ZOVN_PFC_CLASSES = 8, ZOVN_PFC_MOST_QUANTA = 0xffff };

/* What a frame says. */
struct zovn_pfc {
    uint16_t quanta[ZOVN_PFC_CLASSES]; /* of 512 bit times; 0: send again */
    uint8_t enabled; /* classes that it speaks of, as bits */
};

void zovn_pfc_write(uint8_t frame[ZOVN_PFC_BYTES], const uint8_t source[6],
                    const struct zovn_pfc *pfc);

/* Return whether these bytes are a frame of MAC control, which no bridge forwards. */
bool zovn_pfc_is_control(const uint8_t *bytes, uint32_t length);

/* Read a frame; return false if it is not one of PFC. */
bool zovn_pfc_read(const uint8_t *bytes, uint32_t length, struct zovn_pfc *pfc);

/* Return how long so many quanta last. */
uint64_t zovn_pfc_quanta_ns(uint16_t quanta, uint64_t rate_bps);

/* What the peer was asked to do. Whole: no class is above its XOFF threshold for longer than its
 * frame takes, unless it is paused; a pause never expires while its class is above XON. */
struct zovn_pfc_sender {
    uint64_t refresh_ns[ZOVN_PFC_CLASSES]; /* when a paused class must be paused again */
    uint64_t xoff_bytes, xon_bytes; /* of each class: pause above, resume below or at */
    uint64_t rate_bps;
    uint8_t classes; /* that may be paused, as bits */
    uint8_t paused; /* now, as bits */
};

/* Find what has to be sent now, given what each class holds; return false if nothing has. */
bool zovn_pfc_due(const struct zovn_pfc_sender *sender, const uint64_t held[ZOVN_PFC_CLASSES],
                  uint64_t now_ns, struct zovn_pfc *pfc);

/* Note that it was sent. */
void zovn_pfc_sent(struct zovn_pfc_sender *sender, const struct zovn_pfc *pfc, uint64_t now_ns);

/* Return when the next pause must be refreshed; UINT64_MAX if none must. */
uint64_t zovn_pfc_refresh(const struct zovn_pfc_sender *sender);

/* What the peer asked for. */
struct zovn_pfc_receiver {
    uint64_t until_ns[ZOVN_PFC_CLASSES];
    uint64_t rate_bps;
};

void zovn_pfc_obey(struct zovn_pfc_receiver *receiver, const struct zovn_pfc *pfc, uint64_t now_ns);

/* Return the classes that are paused, as bits. */
uint8_t zovn_pfc_paused(const struct zovn_pfc_receiver *receiver, uint64_t now_ns);

/* Return when the next pause expires; UINT64_MAX if none does. */
uint64_t zovn_pfc_expiry(const struct zovn_pfc_receiver *receiver, uint64_t now_ns);

#pragma GCC visibility pop
#endif
