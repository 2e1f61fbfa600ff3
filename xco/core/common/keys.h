// Message keys: the controllers' master key, and two keys derived from it for each host.
//
// A host's key file holds its number and its own two keys, so that it cannot pose as another host
// or as the controller. docs/decisions/0062-keys-by-host-and-direction.md
#ifndef XCO_COMMON_KEYS_H
#define XCO_COMMON_KEYS_H

#include "common/wire.h"

#define XCO_HOST_KEY_BYTES 72 // size of a host's key file

// The keys of one host's messages.
struct xco_host_keys {
    uint8_t up[XCO_KEY_BYTES];   // host to controller
    uint8_t down[XCO_KEY_BYTES]; // controller to host
};

// Reads the master key (a file of exactly 32 bytes); NULL, or what is wrong with the file.
const char *xco_master_key_read(const char *path, uint8_t master[XCO_KEY_BYTES]);

// Derives the keys of a host.
void xco_host_keys_derive(struct xco_host_keys *keys, const uint8_t master[XCO_KEY_BYTES],
                          uint16_t host);

// Reads the key file of a host; NULL, or what is wrong with the file.
const char *xco_host_keys_read(const char *path, uint16_t host, struct xco_host_keys *keys);

#endif
