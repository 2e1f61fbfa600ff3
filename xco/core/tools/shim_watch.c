// xco-shim-watch: attaches the shim to an interface, and prints what it counts.
//
// Usage: xco-shim-watch OBJECT INTERFACE HOSTS hide|keep
// Input: "mac ADDRESS HOST" or "ip ADDRESS HOST" sets the host of an address (12 or 32 hexadecimal
// digits, in any VLAN); "counts" prints "HOST PACKETS BYTES MARKS" for each host and for all others,
// then a dot. The end of the input detaches it.
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"

static void print_counts(const struct xco_shim *shim) {
    for (unsigned host = 0; host <= shim->hosts; host++) {
        const struct xco_shim_counts found = xco_shim_counts(shim, host);
        (void)printf("%u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", host, (uint64_t)found.packets,
                     (uint64_t)found.bytes, (uint64_t)found.marks);
    }
    (void)puts(".");
}

static int place(struct xco_shim *shim, const char *kind, const char *address, const char *host) {
    struct xco_place found = {.vlan = XCO_ANY_VLAN, .kind = XCO_PLACE_IP};
    if (strcmp(kind, "mac") == 0) {
        found.kind = XCO_PLACE_MAC;
    }
    if (sodium_hex2bin(found.address, sizeof found.address, address, strlen(address), NULL, NULL,
                       NULL) != 0) {
        return -EINVAL;
    }
    return xco_shim_place(shim, &found, (uint16_t)strtoul(host, NULL, 10));
}

static int obey(struct xco_shim *shim) {
    char kind[16], address[40], host[8];
    while (scanf("%15s", kind) == 1) {
        if (strcmp(kind, "counts") == 0) {
            print_counts(shim);
        } else if (scanf("%39s %7s", address, host) != 2 || place(shim, kind, address, host) != 0) {
            return 1;
        } else {
            (void)puts(".");
        }
        (void)fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        (void)fprintf(stderr, "usage: xco-shim-watch OBJECT INTERFACE HOSTS hide|keep\n");
        return 2;
    }
    struct xco_shim shim;
    const struct xco_shim_terms terms = {.hosts = (uint32_t)strtoul(argv[3], NULL, 10),
                                         .keep = strcmp(argv[4], "keep") == 0};
    int error = xco_shim_open(&shim, argv[1], &terms);
    if (error == 0) {
        error = xco_shim_attach(&shim, if_nametoindex(argv[2]));
    }
    if (error != 0) {
        (void)fprintf(stderr, "%s (%s)\n", strerror(-error), xco_shim_problem());
        return 1;
    }
    (void)puts("attached");
    (void)fflush(stdout);
    const int code = obey(&shim);
    xco_shim_close(&shim);
    return code;
}
