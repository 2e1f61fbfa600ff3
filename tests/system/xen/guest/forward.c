/* forward FROM TO WORK_US: an IPv4 router in user space that works WORK_US on every packet, so
   that the guest's CPU, and therefore its cap, is what limits its throughput. */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "work.h"

enum { RECEIVE_BUFFER = 1 << 16 };
static const unsigned char NEXT_HOP[ETH_ALEN] = {2, 0, 0, 0, 0, 2};

static int open_interface(const char *name, unsigned char mac[ETH_ALEN]) {
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP)), size = RECEIVE_BUFFER;
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
    struct ifreq request = {0};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    at.sll_ifindex = if_nametoindex(name);
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) < 0) {
        perror(name);
        exit(1);
    }
    memcpy(mac, request.ifr_hwaddr.sa_data, ETH_ALEN);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    unsigned char own[ETH_ALEN], next[ETH_ALEN], frame[ETH_FRAME_LEN];
    int from = open_interface(argv[1], own), to = open_interface(argv[2], next);
    unsigned long count = turns_per_us() * strtoul(argv[3], NULL, 10);
    struct ethhdr *ethernet = (void *)frame;
    struct iphdr *ip = (void *)(ethernet + 1);
    printf("forwarding, %lu turns for a packet\n", count);
    fflush(stdout);
    for (;;) {
        ssize_t length = recv(from, frame, sizeof frame, 0);
        if (length < (ssize_t)(sizeof *ethernet + sizeof *ip))
            continue;
        if (memcmp(ethernet->h_dest, own, ETH_ALEN) || ip->ttl <= 1)
            continue;
        work(count);
        ip->ttl--;
        /* RFC 1624 for a decrement of the upper byte of a word. */
        unsigned sum = ntohs(ip->check) + 0x100;
        ip->check = htons(sum + (sum >> 16));
        memcpy(ethernet->h_dest, NEXT_HOP, ETH_ALEN);
        memcpy(ethernet->h_source, next, ETH_ALEN);
        if (send(to, frame, length, 0) < 0)
            perror("send");
    }
}
