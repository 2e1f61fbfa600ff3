/* Headers of VXLAN: written, and checked. */
#include "wire/vxlan.h"

#include <string.h>

#include "wire/bytes.h"

enum { TAG = 0x8100, IPV4 = 0x0800, UDP = 17, HOPS = 64, ETHERNET_BYTES = 14, TAG_BYTES = 4 };
enum { IPV4_BYTES = 20, UDP_BYTES = 8, VXLAN_BYTES = 8, HAS_VNI = 0x08 };
enum { DONT_FRAGMENT = 0x4000, FRAGMENT_AT = 0x1fff, MORE_FRAGMENTS = 0x2000 };

/* RFC 1071, of a header with an even length. */
static uint16_t sum(const uint8_t *header, uint32_t length) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < length; i += 2)
        total += zovn_word_at(header + i);
    total = (total & 0xffff) + (total >> 16);
    return (uint16_t)~((total & 0xffff) + (total >> 16));
}

static void write_ethernet(uint8_t *to, const struct zovn_vxlan_path *path) {
    memcpy(to, path->to.ethernet, 6);
    memcpy(to + 6, path->from.ethernet, 6);
    if (path->tagged) {
        zovn_set_word(to + 12, TAG);
        zovn_set_word(to + 14, (uint32_t)path->class << 13);
        to += TAG_BYTES;
    }
    zovn_set_word(to + 12, IPV4);
}

/* The class selector of the class (RFC 2474, 4.2.2) is in the DSCP. */
static void write_ipv4(uint8_t *to, uint32_t length, const struct zovn_vxlan_path *path) {
    memset(to, 0, IPV4_BYTES);
    to[0] = 0x45;
    to[1] = (uint8_t)(path->class << 5);
    zovn_set_word(to + 2, length);
    zovn_set_word(to + 6, DONT_FRAGMENT);
    to[8] = HOPS;
    to[9] = UDP;
    memcpy(to + 12, path->from.address, 4);
    memcpy(to + 16, path->to.address, 4);
    zovn_set_word(to + 10, sum(to, IPV4_BYTES));
}

static void write_udp(uint8_t *to, uint32_t length, uint16_t source) {
    zovn_set_word(to, source);
    zovn_set_word(to + 2, ZOVN_VXLAN_PORT);
    zovn_set_word(to + 4, length);
    zovn_set_word(to + 6, 0);
}

static void write_vxlan(uint8_t *to, uint32_t vni) {
    memset(to, 0, VXLAN_BYTES);
    to[0] = HAS_VNI;
    to[4] = (uint8_t)(vni >> 16);
    zovn_set_word(to + 5, vni & 0xffff);
}

uint32_t zovn_vxlan_write(uint8_t *inner, uint32_t length, const struct zovn_vxlan_path *path) {
    uint8_t *vxlan = inner - VXLAN_BYTES, *udp = vxlan - UDP_BYTES, *ipv4 = udp - IPV4_BYTES;
    uint8_t *begin = ipv4 - ETHERNET_BYTES - (path->tagged ? TAG_BYTES : 0);
    uint32_t datagram = UDP_BYTES + VXLAN_BYTES + length;
    write_vxlan(vxlan, path->vni);
    write_udp(udp, datagram, zovn_vxlan_source_port(inner, length));
    write_ipv4(ipv4, IPV4_BYTES + datagram, path);
    write_ethernet(begin, path);
    return (uint32_t)(inner - begin);
}

/* Bytes that are read from the front. */
struct rest {
    const uint8_t *bytes;
    uint32_t length;
};

static void skip(struct rest *rest, uint32_t length) {
    rest->bytes += length;
    rest->length -= length;
}

/* A tag with a VLAN is for another interface. */
static bool read_ethernet(struct rest *rest, const struct zovn_endpoint *self, uint8_t *class) {
    *class = ZOVN_VXLAN_UNTAGGED;
    if (rest->length < ETHERNET_BYTES + TAG_BYTES || memcmp(rest->bytes, self->ethernet, 6) != 0)
        return false;
    if (zovn_word_at(rest->bytes + 12) == TAG) {
        if (zovn_word_at(rest->bytes + 14) & 0xfff)
            return false;
        *class = rest->bytes[14] >> 5;
        skip(rest, TAG_BYTES);
    }
    bool ipv4 = zovn_word_at(rest->bytes + 12) == IPV4;
    skip(rest, ETHERNET_BYTES);
    return ipv4;
}

/* A later fragment has no port: it may be of any protocol. */
static bool is_ours(const struct rest *rest, uint32_t header, const struct zovn_endpoint *self) {
    const uint8_t *ipv4 = rest->bytes;
    return ipv4[9] == UDP && memcmp(ipv4 + 16, self->address, 4) == 0 &&
           !(zovn_word_at(ipv4 + 6) & FRAGMENT_AT) && rest->length >= header + UDP_BYTES &&
           zovn_word_at(ipv4 + header + 2) == ZOVN_VXLAN_PORT;
}

/* What follows the packet is padding of a short Ethernet frame. */
static enum zovn_vxlan_result read_ipv4(struct rest *rest, const struct zovn_endpoint *self) {
    if (rest->length < IPV4_BYTES || rest->bytes[0] >> 4 != 4)
        return ZOVN_VXLAN_OTHERS;
    uint32_t header = (rest->bytes[0] & 15u) * 4, whole = zovn_word_at(rest->bytes + 2);
    if (header < IPV4_BYTES || !is_ours(rest, header, self))
        return ZOVN_VXLAN_OTHERS;
    if (whole < header + UDP_BYTES || whole > rest->length || sum(rest->bytes, header))
        return ZOVN_VXLAN_BROKEN;
    if (zovn_word_at(rest->bytes + 6) & MORE_FRAGMENTS)
        return ZOVN_VXLAN_FRAGMENT;
    rest->length = whole;
    skip(rest, header);
    return ZOVN_VXLAN_SOUND;
}

/* Reserved bits are ignored (RFC 7348, 5). */
static enum zovn_vxlan_result read_datagram(struct rest *rest, uint32_t vni) {
    uint32_t length = zovn_word_at(rest->bytes + 4);
    if (length > rest->length || length < UDP_BYTES + VXLAN_BYTES)
        return ZOVN_VXLAN_BROKEN;
    rest->length = length;
    skip(rest, UDP_BYTES);
    if (!(rest->bytes[0] & HAS_VNI))
        return ZOVN_VXLAN_FLAGS;
    if (((uint32_t)rest->bytes[4] << 16 | zovn_word_at(rest->bytes + 5)) != vni)
        return ZOVN_VXLAN_FOREIGN;
    skip(rest, VXLAN_BYTES);
    return rest->length < ETHERNET_BYTES ? ZOVN_VXLAN_SHORT : ZOVN_VXLAN_SOUND;
}

enum zovn_vxlan_result zovn_vxlan_read(const uint8_t *bytes, uint32_t length,
                                       const struct zovn_endpoint *self, uint32_t vni,
                                       struct zovn_vxlan_inner *inner) {
    struct rest rest = {bytes, length};
    if (!read_ethernet(&rest, self, &inner->class))
        return ZOVN_VXLAN_OTHERS;
    const uint8_t *ipv4 = rest.bytes;
    enum zovn_vxlan_result result = read_ipv4(&rest, self);
    if (result == ZOVN_VXLAN_SOUND)
        result = read_datagram(&rest, vni);
    if (result != ZOVN_VXLAN_SOUND)
        return result;
    memcpy(inner->from, ipv4 + 12, 4);
    inner->at = (uint32_t)(rest.bytes - bytes);
    inner->length = rest.length;
    return ZOVN_VXLAN_SOUND;
}
