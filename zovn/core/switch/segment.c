/* Headers of segments: what is checked once, and what differs between them (RFC 791, 8200, 9293). */
#include "switch/segment.h"

#include "switch/checksum.h"
#include "switch/words.h"

enum { KIND_TCP4 = 1, KIND_TCP6 = 4, KIND_UDP = 5, ECN_BIT = 0x80 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, IPV4_BYTES = 20, IPV6_BYTES = 40, TCP = 6, UDP = 17 };
enum { TCP_BYTES = 20, TCP_SUM = 16, UDP_BYTES = 8, UDP_SUM = 6 };
enum { FIN = 1, PSH = 8, CWR = 0x80 };

/* Fragments are not segmented. `length` is that of the header. */
static bool ipv4_holds(const uint8_t *packet, uint32_t length, uint8_t protocol) {
    return packet[0] == (0x40 | length / 4) && length >= IPV4_BYTES && length % 4 == 0 &&
           !(zovn_word_at(packet + 6) & 0x3fff) && packet[9] == protocol;
}

/* Extension headers have a multiple of eight bytes. They stay as they are. */
static bool ipv6_holds(const uint8_t *packet, uint32_t length, uint8_t protocol) {
    return packet[0] >> 4 == 6 && length >= IPV6_BYTES && length % 8 == 0 &&
           (length > IPV6_BYTES || packet[6] == protocol);
}

static bool network_holds(const uint8_t *head, const struct zovn_offload *offload,
                          uint32_t network_at, bool udp) {
    uint8_t kind = offload->kind & (uint8_t)~ECN_BIT, protocol = udp ? UDP : TCP;
    uint32_t type = zovn_word_at(head + network_at - 2);
    uint32_t length = offload->checksum_start - network_at;
    if (type == IPV4)
        return kind != KIND_TCP6 && ipv4_holds(head + network_at, length, protocol);
    return type == IPV6 && kind != KIND_TCP4 && ipv6_holds(head + network_at, length, protocol);
}

/* Return how long a transport header is; 0 if it is none. */
static uint32_t transport_bytes(const uint8_t *header, uint32_t offset, bool udp) {
    if (udp)
        return offset == UDP_SUM ? UDP_BYTES : 0;
    uint32_t bytes = (uint32_t)(header[12] >> 4) * 4;
    return offset == TCP_SUM && bytes >= TCP_BYTES ? bytes : 0;
}

uint16_t zovn_payload_at(const struct zovn_frame *frame, const struct zovn_offload *offload,
                         uint32_t network_at) {
    uint8_t head[ZOVN_MOST_HEADERS] = {0};
    uint32_t length = frame->length < sizeof head ? frame->length : (uint32_t)sizeof head;
    uint32_t start = offload->checksum_start;
    bool udp = (offload->kind & ~ECN_BIT) == KIND_UDP;
    if (start + (udp ? UDP_BYTES : TCP_BYTES) > length)
        return 0;
    zovn_frame_peek(frame, head, length);
    uint32_t bytes = transport_bytes(head + start, offload->checksum_offset, udp);
    bool holds = bytes && start + bytes <= length && network_holds(head, offload, network_at, udp);
    return (uint16_t)(holds ? start + bytes : 0);
}

static void edit_ipv4(uint8_t *packet, uint32_t header_bytes, uint32_t bytes, uint32_t number) {
    zovn_set_word(packet + 2, bytes);
    zovn_set_word(packet + 4, zovn_word_at(packet + 4) + number);
    zovn_set_word(packet + 10, 0);
    zovn_set_word(packet + 10, (uint16_t)~zovn_checksum_sum_of(packet, header_bytes));
}

static void edit_network(uint8_t *head, const struct zovn_piece *piece) {
    uint8_t *packet = head + piece->network_at;
    uint32_t bytes = piece->payload_at - piece->network_at + piece->bytes;
    if (zovn_word_at(packet - 2) == IPV4)
        edit_ipv4(packet, piece->transport_at - piece->network_at, bytes, piece->number);
    else
        zovn_set_word(packet + 4, bytes - IPV6_BYTES);
}

/* Only the first segment reports a reduced window, and only the last one ends the stream. */
static void edit_tcp(uint8_t *tcp, const struct zovn_piece *piece) {
    uint32_t low = zovn_word_at(tcp + 6) + (piece->from & 0xffff);
    uint32_t high = zovn_word_at(tcp + 4) + (piece->from >> 16) + (low >> 16);
    zovn_set_word(tcp + 4, high);
    zovn_set_word(tcp + 6, low);
    if (!piece->last)
        tcp[13] &= (uint8_t)~(FIN | PSH);
    if (piece->number)
        tcp[13] &= (uint8_t)~CWR;
}

/* The sender left the sum of the pseudo header there; of that only the length changes. */
static void edit_sum(uint8_t *sum, uint32_t before, uint32_t after) {
    uint16_t without = zovn_checksum_add((uint16_t)zovn_word_at(sum), (uint16_t)~before);
    zovn_set_word(sum, zovn_checksum_add(without, (uint16_t)after));
}

void zovn_segment_headers(uint8_t *head, const struct zovn_piece *piece, uint32_t length) {
    uint8_t *transport = head + piece->transport_at;
    uint32_t bytes = piece->payload_at - piece->transport_at + piece->bytes;
    edit_network(head, piece);
    if (piece->udp)
        zovn_set_word(transport + 4, bytes);
    else
        edit_tcp(transport, piece);
    edit_sum(transport + (piece->udp ? UDP_SUM : TCP_SUM), length - piece->transport_at, bytes);
}
