/* VXLAN over IPv4 (RFC 7348): puts headers before a frame, and checks and removes them.
 *
 * The class is in the outer priority tag (VLAN 0), if there is one, and in the outer DSCP. The outer
 * UDP checksum is 0, as the RFC asks for. Pure. */
#ifndef ZOVN_WIRE_VXLAN_H
#define ZOVN_WIRE_VXLAN_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    ZOVN_VXLAN_PORT = 4789,
    ZOVN_VXLAN_MOST_VNI = 0xffffff,
    ZOVN_VXLAN_HEADERS = 54, /* Ethernet with a tag, IPv4, UDP, VXLAN */
    ZOVN_VXLAN_TAG = 4,      /* of these, what a frame without a tag does not have */
    ZOVN_VXLAN_PACKET = 36,  /* what the outer MTU has before the inner frame */
    ZOVN_VXLAN_UNTAGGED = 0xff, /* the class of a frame without an outer tag */
};

/* One end of a tunnel. */
struct zovn_endpoint {
    uint8_t ethernet[6];
    uint8_t address[4];
};

/* Where a frame goes, and as what. */
struct zovn_vxlan_path {
    struct zovn_endpoint from, to;
    uint32_t vni;
    uint8_t class;
    bool tagged; /* with the class as priority */
};

/* Why a frame is refused. A frame for others is none of ours, and no mistake. */
enum zovn_vxlan_result {
    ZOVN_VXLAN_SOUND,
    ZOVN_VXLAN_OTHERS,   /* another address, protocol or port */
    ZOVN_VXLAN_FRAGMENT, /* RFC 7348, 4.3: must not be */
    ZOVN_VXLAN_BROKEN,   /* lengths or checksum of IPv4, or lengths of UDP, do not hold */
    ZOVN_VXLAN_FLAGS,    /* without a VNI */
    ZOVN_VXLAN_FOREIGN,  /* another VNI */
    ZOVN_VXLAN_SHORT,    /* no Ethernet header inside */
};

/* What was found in one. */
struct zovn_vxlan_inner {
    uint32_t at, length;
    uint8_t class; /* by the outer tag, or ZOVN_VXLAN_UNTAGGED */
    uint8_t from[4];
};

/* Write headers right before a frame, which is at `inner`; return how many bytes. */
uint32_t zovn_vxlan_write(uint8_t *inner, uint32_t length, const struct zovn_vxlan_path *path);

enum zovn_vxlan_result zovn_vxlan_read(const uint8_t *bytes, uint32_t length,
                                       const struct zovn_endpoint *self, uint32_t vni,
                                       struct zovn_vxlan_inner *inner);

/* Return the source port of a frame: from 49152 on, the same for all frames of one flow. */
uint16_t zovn_vxlan_source_port(const uint8_t *inner, uint32_t length);

#pragma GCC visibility pop
#endif
