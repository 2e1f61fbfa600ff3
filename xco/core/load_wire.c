// Encodes and decodes for all hosts of the load generator.
#include "load_wire.h"

static uint8_t shared_key[XCO_KEY_BYTES];

bool xco_load_wire_open(const char *key_path) {
    return xco_wire_init() == 0 && xco_key_read(key_path, shared_key) == 0;
}

size_t xco_load_encode(const struct xco_message *message, uint8_t datagram[XCO_DATAGRAM_MAX]) {
    return xco_wire_encode(message, shared_key, datagram);
}

bool xco_load_decode(const uint8_t *datagram, size_t length, struct xco_message *message) {
    return xco_wire_decode(datagram, length, shared_key, message) == XCO_WIRE_OK;
}
