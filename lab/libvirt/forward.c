/* The forwarder of a container router: IPv4 frames from either interface to the other.
 *
 * forward IF0 ROUTER0 NEXT0 IF1 ROUTER1 NEXT1
 *
 * What arrives for ROUTERn at IFn leaves by the other interface, for that side's NEXT. The TTL goes
 * down and the header's checksum is updated (RFC 1624), as a router must (RFC 1812, section 5.3.1).
 * It is one process on packet sockets (packet(7)), so that a CPU quota throttles it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 32, FRAME = 2048, BUFFER = 1 << 20, MIN_FRAME = 34, TTL = 22, CHECKSUM = 24 };

struct port {
    int sock;
    unsigned char router[ETH_ALEN], next[ETH_ALEN];
};

static unsigned char frames[BATCH][FRAME];

static void parse_mac(const char *text, unsigned char *mac) {
    const struct ether_addr *parsed = ether_aton(text);

    if (!parsed)
        errx(1, "%s is not a MAC address", text);
    memcpy(mac, parsed, ETH_ALEN);
}

static void open_port(struct port *port, char **words) {
    const int on = 1, buffer = BUFFER;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};

    parse_mac(words[1], port->router);
    parse_mac(words[2], port->next);
    address.sll_ifindex = (int)if_nametoindex(words[0]);
    port->sock = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
    if (port->sock < 0 || !address.sll_ifindex)
        err(1, "%s", words[0]);
    setsockopt(port->sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    setsockopt(port->sock, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
    setsockopt(port->sock, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (bind(port->sock, (struct sockaddr *)&address, sizeof address))
        err(1, "bind to %s", words[0]);
}

/* Turns the frame as received into the frame to send; 0 says to drop it. */
static int rewrite(unsigned char *frame, unsigned length, const struct port *in,
                   const struct port *out) {
    uint32_t sum;

    if (length < MIN_FRAME || memcmp(frame, in->router, ETH_ALEN) || frame[TTL] <= 1)
        return 0;
    memcpy(frame, out->next, ETH_ALEN);
    memcpy(frame + ETH_ALEN, out->router, ETH_ALEN);
    frame[TTL]--;
    sum = (uint32_t)(frame[CHECKSUM] << 8 | frame[CHECKSUM + 1]) + 0x0100;
    sum = (sum & 0xffff) + (sum >> 16);
    frame[CHECKSUM] = (unsigned char)(sum >> 8);
    frame[CHECKSUM + 1] = (unsigned char)sum;
    return 1;
}

/* Forwards at most one batch; returns whether more may be waiting. */
static int forward(const struct port *in, const struct port *out) {
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH];
    int received, kept = 0, sent = 0;

    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){frames[i], FRAME};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    received = recvmmsg(in->sock, messages, BATCH, 0, NULL);
    for (int i = 0; i < received; i++)
        if (rewrite(frames[i], messages[i].msg_len, in, out))
            parts[kept++] = (struct iovec){frames[i], messages[i].msg_len};
    for (int i = 0; i < kept; i++) {
        memset(&messages[i].msg_hdr, 0, sizeof messages[i].msg_hdr);
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    while (sent < kept) {
        int done = sendmmsg(out->sock, messages + sent, (unsigned)(kept - sent), 0);

        sent += done > 0 ? done : 1; /* a full queue loses that packet, as in any router */
    }
    return received == BATCH;
}

int main(int argc, char **argv) {
    struct port ports[2];

    if (argc != 7)
        errx(2, "usage: forward IF0 ROUTER0 NEXT0 IF1 ROUTER1 NEXT1");
    open_port(&ports[0], argv + 1);
    open_port(&ports[1], argv + 4);
    for (;;) {
        int busy = forward(&ports[0], &ports[1]);

        busy |= forward(&ports[1], &ports[0]); /* each direction has its turn */
        if (!busy) {
            struct pollfd wait[2] = {{.fd = ports[0].sock, .events = POLLIN},
                                     {.fd = ports[1].sock, .events = POLLIN}};

            poll(wait, 2, -1);
        }
    }
}
