/* Common parts of all roles of the traffic program: options, orders, sockets, counts, reports. */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 1024

void fail(const char *format, ...) {
    int code = errno;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, code != 0 ? ": %s\n" : "\n", strerror(code));
    exit(1);
}

void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fail("no memory");
    }
    return memory;
}

const char *option_text(const struct options *options, const char *name, const char *otherwise) {
    for (int i = 0; i + 1 < options->count; i += 2) {
        if (strcmp(options->words[i], name) == 0) {
            return options->words[i + 1];
        }
    }
    return otherwise;
}

const char *option_needed(const struct options *options, const char *name) {
    const char *text = option_text(options, name, NULL);
    if (text == NULL) {
        errno = 0;
        fail("%s is missing", name);
    }
    return text;
}

uint64_t option_number(const struct options *options, const char *name, uint64_t otherwise) {
    const char *text = option_text(options, name, NULL);
    if (text == NULL) {
        return otherwise;
    }
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        fail("%s %s is not a whole number", name, text);
    }
    return number;
}

/* Return an address and --port as a socket address; a missing part means any. */
struct sockaddr_in option_end(const struct options *options, const char *name,
                              const char *otherwise) {
    const char *text = option_text(options, name, otherwise);
    struct sockaddr_in end = {.sin_family = AF_INET};
    errno = 0;
    if (text == NULL || inet_pton(AF_INET, text, &end.sin_addr) != 1) {
        fail("%s %s is not an IPv4 address", name, text == NULL ? "(missing)" : text);
    }
    end.sin_port = htons((uint16_t)option_number(options, "--port", 0));
    return end;
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Come before other programs, where that is allowed: real switches and cables wait for no CPU. */
void take_precedence(void) {
    const struct sched_param lowest = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &lowest);
    prctl(PR_SET_TIMERSLACK, 1); /* by default 50 us, as long as four frames at 1 Gb/s */
}

void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

static void report(report_writer write, void *role) {
    printf("{\"now_ns\":%" PRIu64, now_ns());
    write(role);
    puts("}");
    if (fflush(stdout) != 0) {
        fail("standard output");
    }
}

/* Carry out orders from the standard input, when it is readable; return false to end. */
bool obey(report_writer write, void *role) {
    char text[256];
    ssize_t length = read(STDIN_FILENO, text, sizeof text);
    if (length < 0) {
        fail("standard input");
    }
    for (ssize_t i = 0; i < length; i++) {
        if (text[i] == '\n') {
            report(write, role);
        }
    }
    if (length == 0) {
        report(write, role);
    }
    return length > 0;
}

struct source *source_of(struct sources *sources, uint32_t address) {
    for (size_t i = 0; i < sources->count; i++) {
        if (sources->entries[i].address == address) {
            return &sources->entries[i];
        }
    }
    if (sources->count == SOURCES_MAX) {
        errno = 0;
        fail("more than %d sources", SOURCES_MAX);
    }
    struct source *fresh = &sources->entries[sources->count++];
    fresh->address = address;
    return fresh;
}

void sources_write(const struct sources *sources) {
    printf(",\"sources\":{");
    for (size_t i = 0; i < sources->count; i++) {
        const struct source *source = &sources->entries[i];
        char text[INET_ADDRSTRLEN];
        struct in_addr address = {htonl(source->address)};
        inet_ntop(AF_INET, &address, text, sizeof text);
        printf("%s\"%s\":{\"bytes\":%" PRIu64 ",\"count\":%" PRIu64 "}", i > 0 ? "," : "", text,
               source->bytes, source->count);
    }
    printf("}");
}

void samples_add(struct samples *samples, uint64_t value) {
    if (samples->count < SAMPLES_MAX) {
        samples->values[samples->count++] = value;
    } else {
        samples->lost++;
    }
}

void counts_write(const char *name, const uint64_t *counts, size_t count) {
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        printf("%s%" PRIu64, i > 0 ? "," : "", counts[i]);
    }
    printf("]");
}

/* Write the samples and start again. */
void samples_write(struct samples *samples, const char *name) {
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < samples->count; i++) {
        printf("%s%" PRIu64, i > 0 ? "," : "", samples->values[i]);
    }
    printf("],\"samples_lost\":%" PRIu64, samples->lost);
    samples->count = 0;
}

void set_option(int fd, int level, int name, int value) {
    if (setsockopt(fd, level, name, &value, sizeof value) != 0) {
        fail("socket option %d", name);
    }
}

void set_nonblocking(int fd) {
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
        fail("O_NONBLOCK");
    }
}

/* Return a TCP socket with CUBIC that sends immediately (the kernel's default may differ). */
int tcp_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) != 0) {
        fail("a CUBIC socket");
    }
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    return fd;
}

void set_congestion(int fd, const char *name) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0) {
        fail("--congestion %s", name);
    }
}

int tcp_listen(struct sockaddr_in here) {
    int fd = tcp_socket();
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, BACKLOG) != 0) {
        fail("listen");
    }
    set_nonblocking(fd);
    return fd;
}

int tcp_connect(struct sockaddr_in here, struct sockaddr_in there) {
    int fd = tcp_socket();
    here.sin_port = 0;
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 ||
        connect(fd, (struct sockaddr *)&there, sizeof there) != 0) {
        fail("connect");
    }
    set_nonblocking(fd);
    return fd;
}

int udp_socket(struct sockaddr_in here) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        fail("a UDP socket");
    }
    return fd;
}

/* Return a socket for the frames that an interface receives, whatever their destination. */
int frame_socket(const char *interface) {
    struct sockaddr_ll here = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    here.sll_ifindex = (int)if_nametoindex(interface);
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (here.sll_ifindex == 0 || fd < 0) {
        fail("%s", interface);
    }
    set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        fail("%s", interface);
    }
    return fd;
}
