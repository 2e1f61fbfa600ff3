// Reads key files, and derives the keys of each host from the master key.
#include "common/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char CONTEXT[crypto_kdf_CONTEXTBYTES + 1] = "xcohost_";
static const char PEER_CONTEXT[crypto_kdf_CONTEXTBYTES + 1] = "xcopeer_";
static const uint8_t MAGIC[4] = {'X', 'C', 'O', 'H'}; // begins a host's key file

enum { ALONE = 1, WITH_PEERS = 2 }; // versions of a host's key file
enum { NUMBER_AT = 6, KEYS_AT = 8 };

_Static_assert(XCO_KEY_BYTES == crypto_kdf_KEYBYTES, "the master key's length");
_Static_assert(KEYS_AT + 2 * XCO_KEY_BYTES == XCO_HOST_KEY_BYTES, "a host's key file");

static unsigned two_bytes(const uint8_t *at) {
    return at[0] | (unsigned)at[1] << 8;
}

// Whether these are the first bytes of a host's key file.
static bool is_hosts(const uint8_t *bytes, ssize_t length) {
    const unsigned version = length == XCO_HOST_KEY_BYTES ? ALONE : WITH_PEERS;
    return length >= XCO_HOST_KEY_BYTES && memcmp(bytes, MAGIC, sizeof MAGIC) == 0 &&
           two_bytes(bytes + sizeof MAGIC) == version;
}

// Reads a file; returns its length, at most `room`, or -1 with errno.
static ssize_t read_file(const char *path, uint8_t *bytes, size_t room) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    const ssize_t length = read(file, bytes, room);
    const int problem = errno;
    close(file);
    errno = problem;
    return length;
}

const char *xco_master_key_read(const char *path, uint8_t master[XCO_KEY_BYTES]) {
    uint8_t bytes[XCO_HOST_KEY_BYTES + 1];
    const char *problem = NULL;
    const ssize_t length = read_file(path, bytes, sizeof bytes);
    if (length < 0) {
        problem = strerror(errno);
    } else if (is_hosts(bytes, length)) {
        problem = "is the key of a host; a controller needs the master key";
    } else if (length != XCO_KEY_BYTES) {
        problem = "a master key has exactly 32 bytes";
    } else {
        memcpy(master, bytes, XCO_KEY_BYTES);
    }
    sodium_memzero(bytes, sizeof bytes);
    return problem;
}

void xco_host_keys_derive(struct xco_host_keys *keys, const uint8_t master[XCO_KEY_BYTES],
                          uint16_t host) {
    const uint64_t number = UINT64_C(2) * host;
    (void)crypto_kdf_derive_from_key(keys->up, sizeof keys->up, number, CONTEXT, master);
    (void)crypto_kdf_derive_from_key(keys->down, sizeof keys->down, number + 1, CONTEXT, master);
}

// Returns what is wrong with the bytes of a host's key file, or NULL.
static const char *judge(const uint8_t *bytes, ssize_t length, uint16_t host) {
    if (length == XCO_KEY_BYTES) {
        return "is a master key; a host needs a key of its own: xco key host";
    }
    if (!is_hosts(bytes, length)) {
        return "is no key of a host: make one with xco key host";
    }
    return two_bytes(bytes + NUMBER_AT) == host
               ? NULL
               : "is the key of another host: make one with xco key host";
}

const char *xco_host_keys_read(const char *path, uint16_t host, struct xco_host_keys *keys) {
    uint8_t bytes[XCO_HOST_KEY_BYTES + 1];
    const ssize_t length = read_file(path, bytes, sizeof bytes);
    const char *problem = length < 0 ? strerror(errno) : judge(bytes, length, host);
    if (problem == NULL) {
        memcpy(keys->up, bytes + KEYS_AT, XCO_KEY_BYTES);
        memcpy(keys->down, bytes + KEYS_AT + XCO_KEY_BYTES, XCO_KEY_BYTES);
    }
    sodium_memzero(bytes, sizeof bytes);
    return problem;
}

// Takes the keys for other hosts from a whole file; NULL, or what is wrong with it.
static const char *take_peers(const uint8_t *bytes, size_t length, size_t hosts,
                              struct xco_peer_keys *keys) {
    const size_t head = XCO_HOST_KEY_BYTES + XCO_PEER_HEAD_BYTES;
    const size_t count = length >= head ? two_bytes(bytes + XCO_HOST_KEY_BYTES + XCO_KEY_BYTES) : 0;
    if (length != head + count * XCO_KEY_BYTES || count < hosts) {
        return "has no key for each host of the topology: make it again with xco key host";
    }
    keys->to = calloc(count, sizeof *keys->to);
    if (keys->to == NULL) {
        return strerror(ENOMEM);
    }
    keys->count = count;
    memcpy(keys->root, bytes + XCO_HOST_KEY_BYTES, XCO_KEY_BYTES);
    memcpy(keys->to, bytes + head, count * XCO_KEY_BYTES);
    return NULL;
}

const char *xco_peer_keys_read(const char *path, size_t hosts, struct xco_peer_keys *keys) {
    const size_t room = XCO_HOST_KEY_BYTES + XCO_PEER_HEAD_BYTES + XCO_HOSTS_MAX * XCO_KEY_BYTES;
    uint8_t *bytes = malloc(room);
    if (bytes == NULL) {
        return strerror(ENOMEM);
    }
    const ssize_t length = read_file(path, bytes, room);
    const char *problem =
        length < 0 ? strerror(errno) : take_peers(bytes, (size_t)length, hosts, keys);
    sodium_memzero(bytes, room);
    free(bytes);
    return problem;
}

void xco_peer_key(uint8_t key[XCO_KEY_BYTES], const uint8_t root[XCO_KEY_BYTES], uint16_t sender) {
    (void)crypto_kdf_derive_from_key(key, XCO_KEY_BYTES, sender, PEER_CONTEXT, root);
}
