/* Runs a star between interfaces: sockets, options and reports. */
#include <errno.h>
#include <inttypes.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roles.h"
#include "star.h"
#include "tagged.h"

#define BATCH 1024
#define FRAMES 32768

struct running {
    struct star *star;
    size_t ports;
    uint64_t ran_ns; /* until when all events happened */
    char names[STAR_PORTS][IF_NAMESIZE];
    struct pollfd polls[1 + STAR_PORTS]; /* the orders, the ports */
};

static void write_classes(const struct star_counts *counts) {
    counts_write("dropped", counts->dropped, CLASSES);
    counts_write("overflowed", counts->overflowed, CLASSES);
    counts_write("most_bytes", counts->most_bytes, CLASSES);
    counts_write("xoff_sent", counts->xoff_sent, CLASSES);
    counts_write("xon_sent", counts->xon_sent, CLASSES);
    counts_write("xoff_received", counts->xoff_received, CLASSES);
    counts_write("xon_received", counts->xon_received, CLASSES);
    counts_write("paused_ns", counts->paused_ns, CLASSES);
}

static void write_port(const struct star_counts *counts, uint64_t held_bytes) {
    printf("{\"packets_in\":%" PRIu64 ",\"bytes_in\":%" PRIu64, counts->packets_in,
           counts->bytes_in);
    printf(",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64, counts->packets, counts->bytes);
    printf(",\"floods\":%" PRIu64 ",\"copies\":%" PRIu64, counts->floods, counts->copies);
    printf(",\"unknown\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"refused\":%" PRIu64, counts->unknown,
           counts->missed, counts->refused);
    printf(",\"latest_ns\":%" PRIu64 ",\"held_bytes\":%" PRIu64, counts->latest_ns, held_bytes);
    write_classes(counts);
    printf("}");
}

static void write_star(void *role) {
    struct running *running = role;
    printf(",\"ports\":{");
    for (size_t i = 0; i < running->ports; i++) {
        struct star_counts *counts = star_counts(running->star, i);
        counts->missed += tagged_missed(running->polls[1 + i].fd);
        printf("%s\"%s\":", i > 0 ? "," : "", running->names[i]);
        write_port(counts, star_held_bytes(running->star, i));
    }
    printf("}");
}

/* Return the address of an interface. */
static struct ether_addr address_of(int fd, const char *name) {
    struct ifreq request = {0};
    struct ether_addr address;
    strncpy(request.ifr_name, name, IF_NAMESIZE - 1);
    if (ioctl(fd, SIOCGIFHWADDR, &request) != 0) {
        fail("%s", name);
    }
    memcpy(&address, request.ifr_hwaddr.sa_data, sizeof address);
    return address;
}

/* Open a port of "NAME:RATE_BPS:DELAY_US". */
static void open_port(struct running *running, char *text) {
    size_t port = running->ports++;
    const char *name = strsep(&text, ":"), *rate = strsep(&text, ":"), *delay = text;
    errno = 0;
    if (port == STAR_PORTS || delay == NULL || atoll(rate) <= 0 || strlen(name) >= IF_NAMESIZE) {
        fail("--ports: a port is NAME:RATE_BPS:DELAY_US, and %d are too many", STAR_PORTS + 1);
    }
    int fd = tagged_socket(name);
    struct ether_addr address = address_of(fd, name);
    strcpy(running->names[port], name);
    running->polls[1 + port] = (struct pollfd){.fd = fd, .events = POLLIN};
    star_line(running->star, port, strtoull(rate, NULL, 10), strtoull(delay, NULL, 10) * 1000,
              (char *)address.ether_addr_octet);
}

static size_t port_named(const struct running *running, const char *name) {
    for (size_t i = 0; i < running->ports; i++) {
        if (strcmp(running->names[i], name) == 0) {
            return i;
        }
    }
    errno = 0;
    fail("--addresses: there is no port %s", name);
}

/* Enter an address of "ADDRESS=PORT". */
static void enter_address(struct running *running, char *text) {
    struct ether_addr address;
    const char *written = strsep(&text, "=");
    errno = 0;
    if (text == NULL || ether_aton_r(written, &address) == NULL ||
        !star_enter(running->star, (char *)address.ether_addr_octet, port_named(running, text))) {
        fail("--addresses %s: write ADDRESS=PORT, at most %d", written, STAR_ADDRESSES);
    }
}

static void each_word(struct running *running, const char *text,
                      void (*take)(struct running *running, char *word)) {
    char *copy = strdup(text), *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        take(running, word);
    }
    free(copy);
}

static size_t words_of(const char *text) {
    size_t words = 1;
    for (; *text != '\0'; text++) {
        words += *text == ',';
    }
    return words;
}

static struct running *open_star(const struct options *options) {
    const char *ports = option_needed(options, "--ports");
    struct running *running = allocate(1, sizeof *running);
    struct star_settings settings = {
        .ports = words_of(ports),
        .frames = FRAMES,
        .lossless = option_number(options, "--lossless", 0),
        .buffer_bytes = option_number(options, "--buffer", 0),
        .xoff_bytes = option_number(options, "--xoff", 0),
        .xon_bytes = option_number(options, "--xon", 0),
        .quanta = option_number(options, "--quanta", UINT16_MAX),
    };
    running->star = star_new(&settings);
    each_word(running, ports, open_port);
    each_word(running, option_needed(options, "--addresses"), enter_address);
    running->polls[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    return running;
}

/* Take the frames that have arrived at a port, as at the instant when they did. */
static void take(struct running *running, size_t port) {
    struct tagged_room room;
    size_t length;
    uint64_t waited_ns, latest_ns = running->ran_ns;
    const char *data;
    for (int i = 0; i < BATCH && (data = tagged_receive_late(running->polls[1 + port].fd, &room,
                                                             &length, &waited_ns)) != NULL;
         i++) {
        uint64_t came_ns = now_ns() - waited_ns;
        latest_ns = came_ns > latest_ns ? came_ns : latest_ns;
        star_arrive(running->star, port, data, length, latest_ns);
    }
}

/* Send what is at the end of a port's line. */
static void pass(struct running *running, size_t port) {
    const char *data;
    size_t length;
    for (uint64_t now;
         now = now_ns(), (data = star_departure(running->star, port, now, &length)) != NULL;) {
        ssize_t sent = send(running->polls[1 + port].fd, data, length, 0);
        star_sent(running->star, port, sent == (ssize_t)length, now);
    }
}

/* Wait for frames, orders, or what is due. */
static void wait_for_more(struct running *running) {
    uint64_t now = now_ns(), due_ns = star_due_ns(running->star);
    uint64_t wait_ns = due_ns > now ? due_ns - now : 0;
    wait_ns = wait_ns < NS_PER_S ? wait_ns : NS_PER_S;
    struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    if (ppoll(running->polls, 1 + running->ports, &wait, NULL) < 0) {
        fail("ppoll");
    }
}

void star(const struct options *options) {
    struct running *running = open_star(options);
    take_precedence();
    say_ready();
    do {
        wait_for_more(running);
        for (size_t i = 0; i < running->ports; i++) {
            if (running->polls[1 + i].revents != 0) {
                take(running, i);
            }
        }
        running->ran_ns = now_ns();
        star_run(running->star, running->ran_ns);
        for (size_t i = 0; i < running->ports; i++) {
            pass(running, i);
        }
    } while (running->polls[0].revents == 0 || obey(write_star, running));
    star_free(running->star);
    free(running);
}
