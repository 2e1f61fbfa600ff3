// The load generator's authentication of messages.
#ifndef XCO_TOOLS_LOAD_WIRE_H
#define XCO_TOOLS_LOAD_WIRE_H

#include <stdbool.h>

#include "common/wire.h"

// Derives the keys of so many hosts from the master key; false if that cannot be read.
bool xco_load_wire_open(const char *key_path, unsigned hosts);

// Writes a host's message; returns its length, or 0.
size_t xco_load_encode(const struct xco_message *message, uint8_t datagram[XCO_DATAGRAM_MAX]);

// Reads the controller's message to one of the hosts.
bool xco_load_decode(const uint8_t *datagram, size_t length, struct xco_message *message);

#endif
