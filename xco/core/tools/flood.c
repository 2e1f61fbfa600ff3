// xco-flood: sends one datagram to a port of the loopback interface as fast as the kernel takes it.
//
// Usage: xco-flood PORT HEX. SIGTERM ends it; it prints the number sent and the seconds taken.
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/wire.h"

#define BATCH 64u

static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void)signal;
    stopping = 1;
}

static double now_s(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now); // cannot fail for this clock
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int open_socket(const char *port) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return connect(descriptor, (const struct sockaddr *)&address, sizeof address) == 0 ? descriptor
                                                                                       : -1;
}

// Sends the same bytes until it is stopped; returns how many datagrams the kernel took.
static uint64_t flood(int descriptor, struct iovec *bytes) {
    struct mmsghdr messages[BATCH];
    memset(messages, 0, sizeof messages);
    for (unsigned i = 0; i < BATCH; i++) {
        messages[i].msg_hdr.msg_iov = bytes;
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    uint64_t taken = 0;
    while (!stopping) {
        const int sent = sendmmsg(descriptor, messages, BATCH, 0);
        taken += sent > 0 ? (uint64_t)sent : 0;
    }
    return taken;
}

int main(int argc, char **argv) {
    uint8_t datagram[XCO_DATAGRAM_MAX];
    struct iovec bytes = {datagram, 0};
    const int descriptor = argc == 3 ? open_socket(argv[1]) : -1;
    if (descriptor < 0 || sodium_hex2bin(datagram, sizeof datagram, argv[2], strlen(argv[2]), NULL,
                                         &bytes.iov_len, NULL) != 0) {
        (void)fprintf(stderr, "usage: xco-flood PORT HEX\n");
        return 2;
    }
    (void)signal(SIGTERM, stop);
    const double began = now_s();
    const uint64_t taken = flood(descriptor, &bytes);
    (void)printf("%" PRIu64 " %.6f\n", taken, now_s() - began);
    (void)close(descriptor);
    return 0;
}
