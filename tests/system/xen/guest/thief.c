/* thief INTERFACE: takes CPU time from the router of its guest, in each tenth of a second as much
   as the last request says: a frame of EtherType 0x88b5 with the microseconds in 32 bits. */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "work.h"

enum { REQUEST = 0x88b5, PERIOD_MS = 100, MOST_BEHIND_MS = 1000 };

static long long now_ms(void) {
    return now_ns() / 1000000;
}

static int open_requests(const char *name) {
    int fd = socket(AF_PACKET, SOCK_RAW, htons(REQUEST));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(REQUEST)};
    at.sll_ifindex = if_nametoindex(name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        perror(name);
        exit(1);
    }
    return fd;
}

/* The microseconds of a request; those in force if it has none. */
static unsigned long requested(int fd, unsigned long us) {
    unsigned char frame[ETH_FRAME_LEN];
    uint32_t wanted;
    ssize_t length = recv(fd, frame, sizeof frame, 0);
    if (length < (ssize_t)(ETH_HLEN + sizeof wanted))
        return us;
    memcpy(&wanted, frame + ETH_HLEN, sizeof wanted);
    printf("taking %u us in %d ms\n", ntohl(wanted), PERIOD_MS);
    fflush(stdout);
    return ntohl(wanted);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct pollfd request = {.fd = open_requests(argv[1]), .events = POLLIN};
    unsigned long each_us = turns_per_us(), us = 0;
    long long due = 0;
    for (;;) {
        long long left = due - now_ms();
        if (left < 0)
            left = 0;
        if (poll(&request, 1, us ? (int)left : -1) > 0) {
            us = requested(request.fd, us);
            due = now_ms();
            continue;
        }
        work(each_us * us);
        due += PERIOD_MS;
        /* What a small cap has delayed is made up for, but not for long. */
        if (now_ms() - due > MOST_BEHIND_MS)
            due = now_ms();
    }
}
