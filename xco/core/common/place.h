/* An address of a VM or host; BPF programs use it too. */
#ifndef XCO_COMMON_PLACE_H
#define XCO_COMMON_PLACE_H

#include <linux/types.h>

#define XCO_ANY_VLAN 0xffffu

// XCO_PLACE_HOST is no address: it says that a host has named all that are behind it.
enum xco_place_kind { XCO_PLACE_MAC = 1, XCO_PLACE_IP = 2, XCO_PLACE_HOST = 3 };

/* An address of a VM or host. IPv4 is mapped into IPv6 (RFC 4291, 2.5.5.2); a MAC comes first. */
struct xco_place {
    __u8 address[16];
    __u16 vlan; /* the outermost tag's; 0: none; XCO_ANY_VLAN: any */
    __u8 kind;  /* enum xco_place_kind */
    __u8 reserved;
};

/* Notes in `kinds` that an address of this kind exists, in this VLAN or in any. */
#define XCO_KIND_BIT(kind, vlan) (1u << (2u * (kind) + ((vlan) != XCO_ANY_VLAN)))

#endif
