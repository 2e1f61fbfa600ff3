// Encodes, decodes and authenticates messages, and rejects stale ones.
//
// docs/reference/xco-protocol.md describes the protocol, common/message.h the messages.
#ifndef XCO_COMMON_WIRE_H
#define XCO_COMMON_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "common/message.h"

enum xco_wire_result {
    XCO_WIRE_OK = 0,
    XCO_WIRE_MALFORMED = 1, // not one of these messages, or it breaks one of their rules
    XCO_WIRE_FORGED = 2,    // the authenticator does not match
    XCO_WIRE_VERSION_DIFFERS = 3,
};

// Call once before anything else; 0, or -1 if libsodium is not usable.
int xco_wire_init(void);

// Writes a message, authenticated; returns its length, or 0 if it breaks a rule (unknown type, too
// many entries).
size_t xco_wire_encode(const struct xco_message *message, const uint8_t key[XCO_KEY_BYTES],
                       uint8_t datagram[XCO_DATAGRAM_MAX]);

// Reads a message. Before checking the authenticator it relies only on magic, version and length.
// `message` is complete only when the result is XCO_WIRE_OK.
enum xco_wire_result xco_wire_decode(const uint8_t *datagram, size_t length,
                                     const uint8_t key[XCO_KEY_BYTES], struct xco_message *message);

// Reads parts of a possible message before checking its authenticator: to look up the key, and to
// drop what could not be obeyed anyway. The length is at least XCO_HEADER_BYTES.
struct xco_claim {
    uint8_t type;
    uint8_t version;
    uint16_t host;
    uint64_t sequence;
};
struct xco_claim xco_wire_claim(const uint8_t *datagram);

// State kept of a sender: the highest epoch, and the highest sequence within it.
struct xco_origin {
    uint64_t epoch;
    uint64_t sequence;
};

enum xco_freshness {
    XCO_FRESH = 0,
    XCO_DUPLICATE = 1,   // the same sequence as the last
    XCO_LATE = 2,        // overtaken by a newer one
    XCO_LOWER_EPOCH = 3, // an order of a replaced controller
};

// For hosts: whether to obey a controller's message; records it if so. A higher epoch starts its
// own sequences; lower epochs are always rejected.
enum xco_freshness xco_origin_accept(struct xco_origin *origin, uint64_t epoch, uint64_t sequence);

// For the controller: the same for a host's message; its sequences rise over all epochs.
enum xco_freshness xco_origin_accept_host(struct xco_origin *origin, uint64_t sequence);

#endif
