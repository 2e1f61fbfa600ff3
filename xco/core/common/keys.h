// Message keys: the controllers' master key, and the keys derived from it for each host.
//
// A host's key file holds its number and its own keys, so that it cannot pose as another host or as
// the controller. docs/decisions/0062-keys-by-host-and-direction.md; for messages between hosts
// 0077-rates-between-hosts.md
#ifndef XCO_COMMON_KEYS_H
#define XCO_COMMON_KEYS_H

#include "common/wire.h"

#define XCO_HOST_KEY_BYTES 72 // of a host's key file without keys for other hosts
#define XCO_PEER_HEAD_BYTES 40 // root and number of keys, before the keys for other hosts

// The keys of one host's messages.
struct xco_host_keys {
    uint8_t up[XCO_KEY_BYTES]; // host to controller
    uint8_t down[XCO_KEY_BYTES]; // controller to host
};

// Reads the master key (a file of exactly 32 bytes); NULL, or what is wrong with the file.
const char *xco_master_key_read(const char *path, uint8_t master[XCO_KEY_BYTES]);

// Derives the keys of a host.
void xco_host_keys_derive(struct xco_host_keys *keys, const uint8_t master[XCO_KEY_BYTES],
                          uint16_t host);

// Reads the key file of a host; NULL, or what is wrong with the file.
const char *xco_host_keys_read(const char *path, uint16_t host, struct xco_host_keys *keys);

// The keys of one host's messages with other hosts.
struct xco_peer_keys {
    uint8_t root[XCO_KEY_BYTES]; // the keys of messages to this host are derived from it
    size_t count;
    uint8_t (*to)[XCO_KEY_BYTES]; // of messages to each host, by number; allocated
};

// Reads the keys for other hosts from the key file of a host, at least for so many hosts; NULL, or
// what is wrong with the file, after xco_host_keys_read.
const char *xco_peer_keys_read(const char *path, size_t hosts, struct xco_peer_keys *keys);

// Derives the key of a host's messages to the one that has this root.
void xco_peer_key(uint8_t key[XCO_KEY_BYTES], const uint8_t root[XCO_KEY_BYTES], uint16_t sender);

#endif
