/* Ping: ICMP echo requests at a steady pace, and the time until each answer has arrived.
 *
 * The kernel timestamps arrivals, so that late wake-ups on a busy machine do not count.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "roles.h"

#define REMEMBERED 4096 /* requests that wait for an answer */
#define PACKET_MAX 1500

struct pinger {
    int fd;
    uint16_t identifier;
    size_t size;
    uint64_t interval_ns, next_ns, sent, received;
    uint64_t sent_ns[REMEMBERED]; /* by sequence; 0: answered, or never sent */
    struct samples rtt_ns;
};

static void write_pinger(void *role) {
    struct pinger *pinger = role;
    printf(",\"sent\":%" PRIu64 ",\"received\":%" PRIu64, pinger->sent, pinger->received);
    samples_write(&pinger->rtt_ns, "rtt_ns");
}

/* Arrivals have wall-clock timestamps, so departures have them, too. */
static uint64_t wall_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Return the Internet checksum of a packet whose own is 0 (RFC 1071). */
static uint16_t checksum(const unsigned char *packet, size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += i % 2 == 0 ? (uint32_t)packet[i] << 8 : packet[i];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return htons((uint16_t)~sum);
}

static void send_request(struct pinger *pinger) {
    unsigned char packet[PACKET_MAX] = {0};
    struct icmphdr header = {.type = ICMP_ECHO};
    header.un.echo.id = htons(pinger->identifier);
    header.un.echo.sequence = htons((uint16_t)pinger->sent);
    memcpy(packet, &header, sizeof header);
    header.checksum = checksum(packet, sizeof header + pinger->size);
    memcpy(packet, &header, sizeof header);
    pinger->sent_ns[pinger->sent % REMEMBERED] = wall_ns();
    if (send(pinger->fd, packet, sizeof header + pinger->size, 0) < 0 && errno != ENOBUFS) {
        fail("send");
    }
    pinger->sent++;
}

static uint64_t arrival_ns(struct msghdr *message) {
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            return (uint64_t)stamp.tv_sec * NS_PER_S + (uint64_t)stamp.tv_nsec;
        }
    }
    return wall_ns();
}

/* Count a packet if it is the first answer to one of our requests. */
static void take_answer(struct pinger *pinger, const unsigned char *packet, size_t length,
                        uint64_t at_ns) {
    struct icmphdr header;
    size_t ip_length = (size_t)(packet[0] & 0x0f) * 4;
    if (length < ip_length + sizeof header) {
        return;
    }
    memcpy(&header, packet + ip_length, sizeof header);
    uint16_t sequence = ntohs(header.un.echo.sequence);
    uint64_t *sent_ns = &pinger->sent_ns[sequence % REMEMBERED];
    bool ours = header.type == ICMP_ECHOREPLY && ntohs(header.un.echo.id) == pinger->identifier;
    if (ours && *sent_ns != 0) {
        samples_add(&pinger->rtt_ns, at_ns > *sent_ns ? at_ns - *sent_ns : 0);
        pinger->received++;
        *sent_ns = 0;
    }
}

static void take_answers(struct pinger *pinger) {
    for (;;) {
        unsigned char packet[PACKET_MAX];
        char control[256];
        struct iovec data = {packet, sizeof packet};
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        ssize_t length = recvmsg(pinger->fd, &message, MSG_DONTWAIT);
        if (length < 0 && errno != EAGAIN) {
            fail("receive");
        }
        if (length <= 0) {
            return;
        }
        take_answer(pinger, packet, (size_t)length, arrival_ns(&message));
    }
}

static void open_pinger(struct pinger *pinger, const struct options *options) {
    struct sockaddr_in here = option_end(options, "--bind", "0.0.0.0");
    struct sockaddr_in there = option_end(options, "--to", NULL);
    pinger->interval_ns = option_number(options, "--interval-us", 10000) * 1000;
    pinger->size = option_number(options, "--size", 56);
    pinger->identifier = (uint16_t)getpid();
    if (pinger->size > PACKET_MAX - 28 || pinger->interval_ns == 0) {
        errno = 0;
        fail("--size is above %d, or --interval-us is 0", PACKET_MAX - 28);
    }
    pinger->fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    if (pinger->fd < 0 || bind(pinger->fd, (struct sockaddr *)&here, sizeof here) != 0 ||
        connect(pinger->fd, (struct sockaddr *)&there, sizeof there) != 0) {
        fail("an ICMP socket");
    }
    set_option(pinger->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
}

void ping(const struct options *options) {
    struct pinger *pinger = allocate(1, sizeof *pinger);
    open_pinger(pinger, options);
    struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = pinger->fd, .events = POLLIN}};
    prctl(PR_SET_TIMERSLACK, 1);
    say_ready();
    pinger->next_ns = now_ns();
    do {
        take_answers(pinger);
        uint64_t now = now_ns();
        if (now >= pinger->next_ns) {
            send_request(pinger);
            uint64_t next_ns = pinger->next_ns + pinger->interval_ns;
            pinger->next_ns = next_ns > now ? next_ns : now + pinger->interval_ns;
        }
        uint64_t wait_ns = pinger->next_ns > now ? pinger->next_ns - now : 0;
        struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
        if (ppoll(polls, 2, &wait, NULL) < 0) {
            fail("ppoll");
        }
    } while (polls[0].revents == 0 || obey(write_pinger, pinger));
    free(pinger);
}
