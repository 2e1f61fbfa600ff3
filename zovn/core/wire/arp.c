/* Requests and answers of ARP. */
#include "wire/arp.h"

#include <string.h>

#include "wire/bytes.h"

enum { ARP = 0x0806, REQUEST = 1, ANSWER = 2, NEEDED = 42, OPERATION_AT = 20, SENDER_AT = 22 };

static const uint8_t FIXED[] = {0, 1, 0x08, 0, 6, 4}; /* Ethernet, IPv4, their lengths */

void zovn_arp_write(uint8_t frame[ZOVN_ARP_BYTES], const struct zovn_endpoint *self,
                    const uint8_t address[4]) {
    memset(frame, 0, ZOVN_ARP_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, self->ethernet, 6);
    zovn_set_word(frame + 12, ARP);
    memcpy(frame + 14, FIXED, sizeof FIXED);
    zovn_set_word(frame + OPERATION_AT, REQUEST);
    memcpy(frame + SENDER_AT, self->ethernet, 6);
    memcpy(frame + SENDER_AT + 6, self->address, 4);
    memcpy(frame + SENDER_AT + 16, address, 4);
}

bool zovn_arp_read(const uint8_t *bytes, uint32_t length, struct zovn_endpoint *sender) {
    static const uint8_t ZERO[6];
    if (length < NEEDED || zovn_word_at(bytes + 12) != ARP ||
        memcmp(bytes + 14, FIXED, sizeof FIXED) != 0)
        return false;
    uint16_t operation = zovn_word_at(bytes + OPERATION_AT);
    memcpy(sender->ethernet, bytes + SENDER_AT, 6);
    memcpy(sender->address, bytes + SENDER_AT + 6, 4);
    return (operation == REQUEST || operation == ANSWER) && !(sender->ethernet[0] & 1) &&
           memcmp(sender->ethernet, ZERO, 6) != 0;
}
