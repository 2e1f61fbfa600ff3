// Encodes and decodes for all hosts of the load generator.
#include "tools/load_wire.h"

#include "common/keys.h"

static struct xco_host_keys keys[XCO_HOSTS_MAX];

bool xco_load_wire_open(const char *key_path, unsigned hosts) {
    uint8_t master[XCO_KEY_BYTES];
    if (xco_wire_init() < 0 || xco_master_key_read(key_path, master) != NULL) {
        return false;
    }
    for (unsigned host = 0; host < hosts; host++) {
        xco_host_keys_derive(&keys[host], master, (uint16_t)host);
    }
    return true;
}

size_t xco_load_encode(const struct xco_message *message, uint8_t datagram[XCO_DATAGRAM_MAX]) {
    return xco_wire_encode(message, keys[message->header.host].up, datagram);
}

bool xco_load_decode(const uint8_t *datagram, size_t length, struct xco_message *message) {
    if (length < XCO_HEADER_BYTES + sizeof(uint16_t)) {
        return false;
    }
    // the bodies of WELCOME and DIRECTIVE start with the receiving host
    unsigned to = datagram[XCO_HEADER_BYTES] | (unsigned)datagram[XCO_HEADER_BYTES + 1] << 8;
    return to < XCO_HOSTS_MAX &&
           xco_wire_decode(datagram, length, keys[to].down, message) == XCO_WIRE_OK;
}
