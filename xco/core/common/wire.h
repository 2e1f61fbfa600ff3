// Encodes, decodes and authenticates messages, and refuses what is not fresh.
//
// docs/xco-protocol.md tells the protocol, common/message.h what a message says.
#ifndef XCO_COMMON_WIRE_H
#define XCO_COMMON_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "common/message.h"

enum xco_wire_result {
    XCO_WIRE_OK = 0,
    XCO_WIRE_MALFORMED = 1, // not one of these messages, or one that breaks a rule of them
    XCO_WIRE_FORGED = 2,    // the authenticator does not fit
    XCO_WIRE_VERSION_DIFFERS = 3,
};

// Call once before anything else; 0, or -1 if libsodium cannot be had.
int xco_wire_init(void);

// Writes a message, authenticated; returns its length, or 0 if it breaks a rule (unknown type, too
// many entries).
size_t xco_wire_encode(const struct xco_message *message, const uint8_t key[XCO_KEY_BYTES],
                       uint8_t datagram[XCO_DATAGRAM_MAX]);

// Reads a message. The authenticator is checked before anything but magic, version and length is
// believed; `message` is only whole when the result is XCO_WIRE_OK.
enum xco_wire_result xco_wire_decode(const uint8_t *datagram, size_t length,
                                     const uint8_t key[XCO_KEY_BYTES],
                                     struct xco_message *message);

// Reads host and sequence of what may be a message, before its authenticator is checked: to look up
// the key, and to drop what could not be obeyed anyhow. The length is at least XCO_HEADER_BYTES.
struct xco_claim {
    uint8_t type;
    uint16_t host;
    uint64_t sequence;
};
struct xco_claim xco_wire_claim(const uint8_t *datagram);

// What is known of a sender: the highest epoch, and the highest sequence within it.
struct xco_origin {
    uint64_t epoch;
    uint64_t sequence;
};

enum xco_freshness {
    XCO_FRESH = 0,
    XCO_DUPLICATE = 1,   // the very sequence of the last
    XCO_LATE = 2,        // overtaken by a newer one
    XCO_LOWER_EPOCH = 3, // an order of a controller that was replaced
};

// For hosts: whether a message of the controller is to be obeyed; notes it if so. A higher epoch
// starts its own sequences; a lower one is refused for ever.
enum xco_freshness xco_origin_accept(struct xco_origin *origin, uint64_t epoch, uint64_t sequence);

// For the controller: the same for a host's message, whose sequences rise over all epochs.
enum xco_freshness xco_origin_accept_host(struct xco_origin *origin, uint64_t sequence);

#endif
