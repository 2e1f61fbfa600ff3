// Measures the cost of authenticating a message: as it is now, and by HMAC as in wire version 1.
//
// Usage: xco-bench-mac [--json]. CPU time of one thread; the least of several rounds.
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/wire.h"

enum { TIMES = 20000, ROUNDS = 20 };

static uint8_t plain[XCO_DATAGRAM_MAX], key[XCO_KEY_BYTES], tag[crypto_auth_BYTES];

static double cpu_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void by_hmac(size_t length) {
    (void)crypto_auth(tag, plain, length, key);
}

static void by_blake2b(size_t length) {
    (void)crypto_generichash(tag, XCO_AUTH_BYTES, plain, length, key, sizeof key);
}

static void by_siphash(size_t length) {
    (void)crypto_shorthash_siphashx24(tag, plain, length, key);
}

// The least time of one call, in us.
static double measure(void (*call)(size_t), size_t length) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double began = cpu_us();
        for (int i = 0; i < TIMES; i++) {
            plain[0] = (uint8_t)i;
            call(length);
        }
        const double took = (cpu_us() - began) / TIMES;
        least = took < least ? took : least;
    }
    return least;
}

static void show(size_t length, bool json) {
    const double hmac = measure(by_hmac, length), blake2b = measure(by_blake2b, length);
    const double siphash = measure(by_siphash, length);
    if (json) {
        printf("{\"bytes\": %zu, \"hmac_us\": %.3f, \"blake2b_us\": %.3f, \"siphash_us\": %.3f}\n",
               length, hmac, blake2b, siphash);
    } else {
        printf("%4zu bytes: HMAC-SHA-512 %.2f us, keyed BLAKE2b %.2f us (%.0f %%), SipHash-2-4-128 "
               "%.2f us\n",
               length, hmac, blake2b, 100 * blake2b / hmac, siphash);
    }
}

int main(int count, char **arguments) {
    static const size_t LENGTHS[] = {64, 112,
                                     840}; // an empty report, four entries, a full directive
    const bool json = count == 2 && strcmp(arguments[1], "--json") == 0;
    if ((count > 1 && !json) || xco_wire_init() != 0) {
        fputs("usage: xco-bench-mac [--json]\n", stderr);
        return 2;
    }
    randombytes_buf(key, sizeof key);
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
        show(LENGTHS[i], json);
    }
    return 0;
}
