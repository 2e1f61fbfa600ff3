/* Edits a frame's first bytes: 802.1Q tags, and congestion experienced (RFC 3168). */
#include "switch/edit.h"

#include <string.h>

#include "switch/words.h"

enum { IPV4 = 0x0800, IPV6 = 0x86dd, IPV4_BYTES = 20, TAG_BYTES = 4, CONGESTED = 3 };
enum { TAG = 0x8100, SERVICE_TAG = 0x88a8 };

/* Only packets of ECN senders are marked, and those only that are not marked already. */
static bool markable(uint32_t bits) {
    return bits == 1 || bits == 2;
}

/* RFC 1624, equation 3. */
static bool mark_ipv4(uint8_t *packet, uint32_t length) {
    if (length < IPV4_BYTES || packet[0] >> 4 != 4 || !markable(packet[1] & 3))
        return false;
    uint32_t before = zovn_word_at(packet), sum = ~zovn_word_at(packet + 10) & 0xffff;
    packet[1] |= CONGESTED;
    sum += (~before & 0xffff) + zovn_word_at(packet);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    zovn_set_word(packet + 10, ~sum & 0xffff);
    return true;
}

/* IPv6 has no checksum of its own. */
static bool mark_ipv6(uint8_t *packet, uint32_t length) {
    if (length < 2 || packet[0] >> 4 != 6 || !markable(packet[1] >> 4 & 3))
        return false;
    packet[1] |= CONGESTED << 4;
    return true;
}

static bool mark_packet(uint8_t *head, uint32_t length, const struct zovn_facts *facts) {
    uint32_t at = zovn_network_at(facts), type = zovn_word_at(head + at - 2);
    if (type == IPV4)
        return mark_ipv4(head + at, length - at);
    return type == IPV6 && mark_ipv6(head + at, length - at);
}

/* Where a checksum begins moves with the tag. */
static void shift(struct zovn_offload *offload, int32_t by) {
    if (!offload->flags)
        return;
    offload->checksum_start = (uint16_t)(offload->checksum_start + by);
    if (offload->header_bytes)
        offload->header_bytes = (uint16_t)(offload->header_bytes + by);
}

static uint8_t *remove_tag(uint8_t *head) {
    memmove(head + TAG_BYTES, head, 12);
    return head + TAG_BYTES;
}

static uint8_t *insert_tag(uint8_t *head, uint16_t vlan) {
    uint8_t *begin = head - TAG_BYTES;
    memmove(begin, head, 12);
    zovn_set_word(begin + 12, TAG);
    zovn_set_word(begin + 14, vlan);
    return begin;
}

/* A tag that lies behind the one to be removed would be taken for the frame's own. */
static bool hides_a_tag(const struct zovn_facts *facts) {
    uint32_t type = zovn_word_at(facts->header + zovn_network_at(facts) - 2);
    return facts->tagged && (type == TAG || type == SERVICE_TAG);
}

/* Return where the frame begins then. A tag keeps its priority. */
static uint8_t *set_tag(uint8_t *head, const struct zovn_facts *facts, bool tag) {
    if (!tag)
        return facts->tagged ? remove_tag(head) : head;
    if (!facts->tagged)
        return insert_tag(head, facts->vlan);
    zovn_set_word(head + 14, (zovn_word_at(head + 14) & 0xf000) | facts->vlan);
    return head;
}

/* Of most frames nothing changes: they have the header that was classified before the rest. */
static bool keep(struct zovn_frame *frame, struct zovn_head *room, const struct zovn_facts *facts) {
    uint32_t length = frame->length < ZOVN_HEADER ? frame->length : ZOVN_HEADER;
    memcpy(room->bytes, facts->header, ZOVN_HEADER);
    zovn_frame_trim(frame, length);
    zovn_frame_prepend(frame, room->bytes, length);
    return false;
}

bool zovn_edit(struct zovn_frame *frame, struct zovn_head *room, const struct zovn_facts *facts,
               bool mark, const struct zovn_port_settings *to) {
    bool tag = to->trunk && (facts->vlan != to->vlan || hides_a_tag(facts));
    if (!mark && !tag && !facts->tagged)
        return keep(frame, room, facts);
    uint8_t *head = room->bytes + TAG_BYTES;
    uint32_t length = sizeof room->bytes - TAG_BYTES;
    if (frame->length < length)
        length = frame->length;
    zovn_frame_peek(frame, head, length);
    memcpy(head, facts->header, length < ZOVN_HEADER ? length : ZOVN_HEADER);
    zovn_frame_trim(frame, length);
    bool marked = mark && mark_packet(head, length, facts);
    uint8_t *begin = set_tag(head, facts, tag);
    int32_t by = (int32_t)(head - begin);
    shift(&frame->offload, by);
    zovn_frame_prepend(frame, begin, (uint32_t)((int32_t)length + by));
    return marked;
}
