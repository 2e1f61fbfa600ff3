// Reads key files, and derives the keys of each host from the master key.
#include "common/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

static const char CONTEXT[crypto_kdf_CONTEXTBYTES + 1] = "xcohost_";
static const uint8_t HEAD[6] = {'X', 'C', 'O', 'H', 1, 0}; // begins a host's key file

_Static_assert(XCO_KEY_BYTES == crypto_kdf_KEYBYTES, "the master key's length");
_Static_assert(sizeof HEAD + 2 + 2 * XCO_KEY_BYTES == XCO_HOST_KEY_BYTES, "a host's key file");

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
    } else if (length == XCO_HOST_KEY_BYTES && memcmp(bytes, HEAD, sizeof HEAD) == 0) {
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
    if (length != XCO_HOST_KEY_BYTES || memcmp(bytes, HEAD, sizeof HEAD) != 0) {
        return "is no key of a host: make one with xco key host";
    }
    const unsigned number = bytes[sizeof HEAD] | (unsigned)bytes[sizeof HEAD + 1] << 8;
    return number == host ? NULL : "is the key of another host: make one with xco key host";
}

const char *xco_host_keys_read(const char *path, uint16_t host, struct xco_host_keys *keys) {
    uint8_t bytes[XCO_HOST_KEY_BYTES + 1];
    const ssize_t length = read_file(path, bytes, sizeof bytes);
    const char *problem = length < 0 ? strerror(errno) : judge(bytes, length, host);
    if (problem == NULL) {
        memcpy(keys->up, bytes + sizeof HEAD + 2, XCO_KEY_BYTES);
        memcpy(keys->down, bytes + sizeof HEAD + 2 + XCO_KEY_BYTES, XCO_KEY_BYTES);
    }
    sodium_memzero(bytes, sizeof bytes);
    return problem;
}
