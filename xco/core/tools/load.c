// xco-load: simulates hosts of a running controller on loopback; writes its measurements as JSON.
//
// Usage: xco-load PORT PID KEYFILE DIGEST NODES_DIGEST HOSTS DESTINATIONS HEARTBEAT_US SECONDS. All
// hosts share one socket: the controller distinguishes them by their numbers. PID is the
// controller's, for its CPU time. Each host sends to so many DESTINATIONS; 0: hosts have roles.
#include <arpa/inet.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/load_hosts.h"
#include "tools/load_wire.h"

#define BATCH 32u
#define MOST_HEARD 128 // batches in a row: rather send less than receive late
#define BUFFER (8 << 20)
#define SETTLE_NS UINT64_C(1500000000) // for joining, and for the start-up load to end
#define CONTROL_BYTES 64
#define SECOND UINT64_C(1000000000)
#define PORT_NS UINT64_C(10000000) // between two reports of a port

// A message that each host sends regularly.
struct round {
    uint64_t period_ns; // between two of any host
    uint64_t due_ns;
    uint32_t turn; // the host whose message is next
};

struct generator {
    struct xco_load load;
    int socket;
    struct round reports;
    struct round ports;
    uint64_t sent; // of these, `sent_ports`
    uint64_t sent_ports;
    uint64_t received;
    uint64_t lost; // could not be sent
    clockid_t cpu; // of the controller
};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now = {0};
    (void)clock_gettime(clock, &now); // an ended controller has used no more time
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static struct xco_load_instant instant(void) {
    return (struct xco_load_instant){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME)};
}

// Datagrams written but not sent yet, and later those received.
struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    _Alignas(8) uint8_t control[BATCH][CONTROL_BYTES];
    uint8_t bytes[BATCH][XCO_DATAGRAM_MAX];
    unsigned count;
};

static void flush(struct generator *generator, struct batch *batch) {
    for (unsigned done = 0; done < batch->count;) {
        const int sent =
            sendmmsg(generator->socket, batch->messages + done, batch->count - done, 0);
        generator->lost += sent < 0;
        done += sent < 0 ? 1 : (unsigned)sent;
    }
    generator->sent += batch->count;
    batch->count = 0;
}

static void post(struct generator *generator, struct batch *batch,
                 const struct xco_message *message) {
    const unsigned i = batch->count++;
    batch->vectors[i] = (struct iovec){batch->bytes[i], xco_load_encode(message, batch->bytes[i])};
    batch->messages[i].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[i], .msg_iovlen = 1};
    if (batch->count == BATCH) {
        flush(generator, batch);
    }
}

static void speak(struct generator *generator, struct batch *batch, uint32_t host) {
    struct xco_message message;
    const struct xco_load_instant at = instant();
    xco_load_speak(&generator->load, host, &at, &message);
    post(generator, batch, &message);
}

static void speak_regularly(struct generator *generator, struct batch *batch, uint32_t host) {
    if (generator->load.hosts[host].role != XCO_LOAD_ASKER) {
        speak(generator, batch, host);
    }
}

static void speak_port(struct generator *generator, struct batch *batch, uint32_t host) {
    struct xco_message message;
    const struct xco_load_instant at = instant();
    if (xco_load_speak_port(&generator->load, host, &at, &message)) {
        generator->sent_ports++;
        post(generator, batch, &message);
    }
}

// Sends messages of a round that are due, a batch at most; skips those that are too late.
static void speak_in_turn(struct generator *generator, struct batch *batch, struct round *round,
                          void (*one)(struct generator *, struct batch *, uint32_t)) {
    const uint32_t hosts = generator->load.count;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < BATCH && round->due_ns <= now_ns; i++) {
        one(generator, batch, round->turn);
        round->turn = (round->turn + 1) % hosts;
        round->due_ns += round->period_ns;
    }
    if (round->due_ns + round->period_ns * hosts < now_ns) {
        round->due_ns = now_ns;
    }
    flush(generator, batch);
}

// A request is sent directly after its timestamp.
static void speak_of_askers(struct generator *generator, struct batch *batch) {
    struct xco_load *load = &generator->load;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t host = 0; host < load->count; host++) {
        if (load->hosts[host].role == XCO_LOAD_ASKER && load->hosts[host].next_ns <= now_ns) {
            speak(generator, batch, host);
            flush(generator, batch);
        }
    }
}

static uint64_t arrival_ns(struct msghdr *message, uint64_t otherwise_ns) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            return (uint64_t)stamp.tv_sec * SECOND + (uint64_t)stamp.tv_nsec;
        }
    }
    return otherwise_ns;
}

static int receive(struct generator *generator, struct batch *batch) {
    for (size_t i = 0; i < BATCH; i++) {
        batch->vectors[i] = (struct iovec){batch->bytes[i], sizeof batch->bytes[i]};
        batch->messages[i].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[i],
                                                     .msg_iovlen = 1,
                                                     .msg_control = batch->control[i],
                                                     .msg_controllen = sizeof batch->control[i]};
    }
    return recvmmsg(generator->socket, batch->messages, BATCH, MSG_DONTWAIT, NULL);
}

// Receives a batch of datagrams; returns whether there may be more.
static bool hear(struct generator *generator, struct batch *batch) {
    const int count = receive(generator, batch);
    struct xco_message message;
    for (int i = 0; i < count; i++) {
        generator->received++;
        if (xco_load_decode(batch->bytes[i], batch->messages[i].msg_len, &message)) {
            struct xco_load_instant at = instant();
            at.wall_ns = arrival_ns(&batch->messages[i].msg_hdr, at.wall_ns);
            xco_load_hear(&generator->load, &at, &message);
        }
    }
    return count == (int)BATCH;
}

static void run(struct generator *generator, uint64_t until_ns) {
    struct batch batch = {.count = 0};
    while (clock_ns(CLOCK_MONOTONIC) < until_ns) {
        speak_of_askers(generator, &batch);
        speak_in_turn(generator, &batch, &generator->reports, speak_regularly);
        speak_in_turn(generator, &batch, &generator->ports, speak_port);
        for (int i = 0; i < MOST_HEARD && hear(generator, &batch); i++) {
        }
    }
}

static int by_size(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double percentile_us(const struct xco_load *load, size_t permille) {
    return load->reactions == 0
               ? 0.0
               : (double)load->reactions_ns[(load->reactions - 1) * permille / 1000] / 1e3;
}

static uint32_t joined(const struct xco_load *load) {
    uint32_t count = 0;
    for (uint32_t host = 0; host < load->count; host++) {
        count += load->hosts[host].joined;
    }
    return count;
}

static void measure(struct generator *generator, uint64_t seconds) {
    struct xco_load *load = &generator->load;
    run(generator, clock_ns(CLOCK_MONOTONIC) + SETTLE_NS);
    load->reactions = 0;
    load->unanswered = generator->received = generator->lost = 0;
    generator->sent = generator->sent_ports = 0;
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = clock_ns(generator->cpu);
    run(generator, began_ns + seconds * SECOND);
    const uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - began_ns;
    const uint64_t used_ns = clock_ns(generator->cpu) - cpu_ns;
    qsort(load->reactions_ns, load->reactions, sizeof *load->reactions_ns, by_size);
    (void)printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"joined\": %" PRIu32
                 ", \"sent\": %" PRIu64 ", \"sent_ports\": %" PRIu64 ", \"received\": %" PRIu64
                 ", \"lost\": %" PRIu64 ", \"answers\": %zu, \"unanswered\": %" PRIu64
                 ", \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
                 (double)took_ns / 1e9, (double)used_ns / 1e9, joined(load), generator->sent,
                 generator->sent_ports, generator->received, generator->lost, load->reactions,
                 load->unanswered, percentile_us(load, 500), percentile_us(load, 990));
}

static bool open_socket(struct generator *generator, const char *port) {
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int on = 1, size = BUFFER;
    generator->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(generator->socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(generator->socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    return generator->socket >= 0 &&
           connect(generator->socket, (const struct sockaddr *)&address, sizeof address) == 0;
}

static bool read_digest(uint8_t digest[XCO_DIGEST_BYTES], const char *hex) {
    return sodium_hex2bin(digest, XCO_DIGEST_BYTES, hex, strlen(hex), NULL, NULL, NULL) == 0;
}

static struct round begun(uint64_t all_ns, uint32_t hosts) {
    return (struct round){.period_ns = all_ns / hosts, .due_ns = clock_ns(CLOCK_MONOTONIC)};
}

static bool open_hosts(struct generator *generator, char **argv) {
    const uint32_t hosts = (uint32_t)strtoul(argv[6], NULL, 10);
    const uint32_t destinations = (uint32_t)strtoul(argv[7], NULL, 10);
    if (hosts == 0 || hosts >= XCO_HOSTS_MAX || destinations >= hosts ||
        destinations > XCO_ENTRIES_MAX ||
        !xco_load_init(&generator->load, hosts, destinations, clock_ns(CLOCK_REALTIME))) {
        return false;
    }
    generator->reports = begun(strtoull(argv[8], NULL, 10) * 1000, hosts);
    generator->ports = begun(PORT_NS, hosts);
    return generator->reports.period_ns > 0 && xco_load_wire_open(argv[3], hosts);
}

static bool open_all(struct generator *generator, char **argv) {
    struct xco_load *load = &generator->load;
    return open_hosts(generator, argv) && read_digest(load->digest, argv[4]) &&
           read_digest(load->nodes_digest, argv[5]) && open_socket(generator, argv[1]) &&
           clock_getcpuclockid((pid_t)strtol(argv[2], NULL, 10), &generator->cpu) == 0;
}

int main(int argc, char **argv) {
    if (argc != 10) {
        (void)fprintf(stderr,
                      "usage: xco-load PORT PID KEYFILE DIGEST NODES_DIGEST HOSTS DESTINATIONS "
                      "HEARTBEAT_US SECONDS\n");
        return 2;
    }
    struct generator generator = {.socket = -1};
    if (!open_all(&generator, argv)) {
        (void)fprintf(stderr, "xco-load: bad argument, or no memory, key, socket or controller\n");
        return 1;
    }
    measure(&generator, strtoull(argv[9], NULL, 10));
    (void)close(generator.socket);
    xco_load_free(&generator.load);
    return 0;
}
