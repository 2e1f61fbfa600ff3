/* The source port of a frame in a tunnel: a hash of its flow, so that links share flows between them. */
#include <string.h>

#include "wire/bytes.h"
#include "wire/vxlan.h"

enum { TAG = 0x8100, IPV4 = 0x0800, IPV6 = 0x86dd, FIRST_PORT = 49152, PORTS = 16384 };
enum { TCP = 6, UDP = 17, SCTP = 132, PORT_BYTES = 4 };

/* FNV-1a. */
static uint32_t mix(uint32_t hash, const uint8_t *bytes, uint32_t length) {
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static bool has_ports(uint8_t protocol) {
    return protocol == TCP || protocol == UDP || protocol == SCTP;
}

static uint32_t mix_ports(uint32_t hash, const uint8_t *packet, uint32_t length, uint32_t at) {
    return at + PORT_BYTES <= length ? mix(hash, packet + at, PORT_BYTES) : hash;
}

/* Fragments have no ports, but the first: none of them counts. */
static uint32_t mix_ipv4(uint32_t hash, const uint8_t *packet, uint32_t length) {
    if (length < 20)
        return hash;
    hash = mix(hash, packet + 9, 1);
    hash = mix(hash, packet + 12, 8);
    bool whole = !(zovn_word_at(packet + 6) & 0x3fff);
    return whole && has_ports(packet[9]) ? mix_ports(hash, packet, length, (packet[0] & 15u) * 4)
                                         : hash;
}

static uint32_t mix_ipv6(uint32_t hash, const uint8_t *packet, uint32_t length) {
    if (length < 40)
        return hash;
    hash = mix(hash, packet + 6, 1);
    hash = mix(hash, packet + 8, 32);
    return has_ports(packet[6]) ? mix_ports(hash, packet, length, 40) : hash;
}

uint16_t zovn_vxlan_source_port(const uint8_t *inner, uint32_t length) {
    uint32_t hash = mix(2166136261u, inner, 12), at = 12;
    uint16_t type = zovn_word_at(inner + at);
    if (type == TAG && length >= 18) {
        at = 16;
        type = zovn_word_at(inner + at);
    }
    hash = mix(hash, inner + at, 2);
    at += 2;
    if (type == IPV4)
        hash = mix_ipv4(hash, inner + at, length - at);
    else if (type == IPV6)
        hash = mix_ipv6(hash, inner + at, length - at);
    return (uint16_t)(FIRST_PORT + (hash ^ hash >> 16) % PORTS);
}
