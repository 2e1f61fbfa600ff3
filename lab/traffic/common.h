/* Common parts of all roles of the traffic program: options, orders, sockets, counts, reports.
 *
 * A role says "ready" on its standard output once traffic can flow. Each line on its standard
 * input requests one report, a line of JSON with counts since the start. At the end of the input,
 * the program writes a last report and exits.
 */
#ifndef LAB_TRAFFIC_COMMON_H
#define LAB_TRAFFIC_COMMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCES_MAX 256
#define SAMPLES_MAX 65536
#define NS_PER_S 1000000000ULL

/* The words of the command line after the role: --name value, in pairs. */
struct options {
    int count;
    char **words;
};

/* Counts of one IPv4 address. */
struct source {
    uint32_t address; /* in the host's byte order */
    uint64_t bytes;
    uint64_t count;
};

/* Counts by source; entries never move. */
struct sources {
    size_t count;
    struct source entries[SOURCES_MAX];
};

/* Durations in ns since the last report; those beyond SAMPLES_MAX are counted only. */
struct samples {
    size_t count;
    uint64_t lost;
    uint64_t values[SAMPLES_MAX];
};

/* Writes the members of a role's report, each with a comma before it. */
typedef void (*report_writer)(void *role);

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *allocate(size_t count, size_t size);

const char *option_text(const struct options *options, const char *name, const char *otherwise);
const char *option_needed(const struct options *options, const char *name);
uint64_t option_number(const struct options *options, const char *name, uint64_t otherwise);
struct sockaddr_in option_end(const struct options *options, const char *name,
                              const char *otherwise);

uint64_t now_ns(void);
void take_precedence(void);
void say_ready(void);
bool obey(report_writer write, void *role);

struct source *source_of(struct sources *sources, uint32_t address);
void sources_write(const struct sources *sources);
void samples_add(struct samples *samples, uint64_t value);
void counts_write(const char *name, const uint64_t *counts, size_t count);
void samples_write(struct samples *samples, const char *name);

void set_option(int fd, int level, int name, int value);
int tcp_socket(void);
void set_congestion(int fd, const char *name);
int tcp_listen(struct sockaddr_in here);
int tcp_connect(struct sockaddr_in here, struct sockaddr_in there);
int udp_socket(struct sockaddr_in here);
void set_nonblocking(int fd);
int frame_socket(const char *interface);

#endif
