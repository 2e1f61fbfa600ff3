/* ARP (RFC 826): asks for the Ethernet address of a host on the same segment. Pure. */
#ifndef ZOVN_WIRE_ARP_H
#define ZOVN_WIRE_ARP_H

#include "wire/vxlan.h"

#pragma GCC visibility push(default)

enum { ZOVN_ARP_BYTES = 60 };

void zovn_arp_write(uint8_t frame[ZOVN_ARP_BYTES], const struct zovn_endpoint *self,
                    const uint8_t address[4]);

/* Read a request or an answer; return false if it is none, and names no station. */
bool zovn_arp_read(const uint8_t *bytes, uint32_t length, struct zovn_endpoint *sender);

#pragma GCC visibility pop
#endif
