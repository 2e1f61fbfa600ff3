// The coordinator's pure parts behind plain functions, for tests through ctypes.
#include "coordinator/engine/arrival.h"
#include "coordinator/config.h"
#include "coordinator/engine/decide.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/flows.h"
#include "coordinator/engine/progress.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct xco_core *shim_begin(const int64_t *times, uint64_t line_bps, uint64_t pace_ppm,
                            int64_t now_ns) {
    struct xco_core *core = calloc(1, sizeof *core);
    struct xco_core_config config = {
        .host = 3,
        .line_bps = line_bps,
        .outside_bps = line_bps / 10,
        .pace_ppm = pace_ppm,
        .guard_ns = times[0],
        .hysteresis_ns = times[1],
        .heartbeat_ns = times[2],
        .report_gap_ns = times[3],
        .silence_ns = times[4],
        .hello_ns = times[5],
        .poll_open_ns = times[6],
        .poll_closed_ns = times[7],
    };
    if (core != NULL) {
        xco_core_begin(core, &config, now_ns);
    }
    return core;
}

// Gives a directive with one permit (none if `destination` is negative).
void shim_directive(struct xco_core *core, int64_t now_ns, uint64_t epoch, uint64_t sequence,
                    int mode, int64_t start_ns, int64_t end_ns, int destination, uint64_t rate_bps,
                    const int64_t *exchange) {
    struct xco_header header = {XCO_DIRECTIVE, XCO_CONTROLLER, epoch, sequence,
                                (uint64_t)exchange[2]};
    struct xco_directive directive = {
        .to = 3,
        .mode = (uint8_t)mode,
        .count = destination >= 0,
        .start_ns = (uint64_t)start_ns,
        .end_ns = (uint64_t)end_ns,
        .echo_sent_ns = (uint64_t)exchange[0],
        .echo_received_ns = (uint64_t)exchange[1],
    };
    directive.entries[0] = (struct xco_permit){(uint16_t)destination, rate_bps};
    xco_core_directive(core, now_ns, &header, &directive);
}

void shim_welcome(struct xco_core *core, int64_t now_ns, uint64_t epoch, int status) {
    struct xco_header header = {XCO_WELCOME, XCO_CONTROLLER, epoch, 1, (uint64_t)now_ns};
    struct xco_welcome welcome = {
        .to = 3,
        .status = (uint8_t)status,
        .echo_sent_ns = (uint64_t)now_ns,
        .echo_received_ns = (uint64_t)now_ns,
    };
    xco_core_welcome(core, now_ns, &header, &welcome);
}

// Decides; a bit each for report, hello, fallback and control, the gates' rates in `rates`.
int shim_decide(struct xco_core *core, int64_t now_ns, uint64_t rates[XCO_GATES]) {
    struct xco_command commands[XCO_COMMANDS];
    size_t count = xco_core_decide(core, now_ns, commands);
    int said = 0;
    for (size_t i = 0; i < count; i++) {
        said |= commands[i].kind == XCO_SET_GATE ? 0 : 1 << (int)commands[i].kind;
        if (commands[i].kind == XCO_SET_GATE) {
            rates[commands[i].gate] = commands[i].opening.rate_bps;
        }
    }
    return said;
}

int64_t shim_alarm(const struct xco_core *core, int64_t now_ns, int *precise) {
    struct xco_alarm alarm = xco_core_alarm(core, now_ns);
    *precise = alarm.precise;
    return alarm.at_ns;
}

uint64_t shim_gave_up(const struct xco_core *core) {
    struct xco_report report;
    xco_core_report(core, &report);
    return report.gave_up_sequence;
}

uint64_t shim_free(const struct xco_core *core) {
    struct xco_report report;
    xco_core_report(core, &report);
    return report.free_ns;
}

void shim_advance(struct xco_core *core, int64_t advance_ns) {
    core->advance_ns = advance_ns;
}

// Writes the report's entries, three numbers each; returns how many, and its flags above bit 16.
int shim_report(const struct xco_core *core, uint64_t entries[3 * XCO_ENTRIES_MAX]) {
    struct xco_report report;
    xco_core_report(core, &report);
    for (unsigned i = 0; i < report.count; i++) {
        entries[3 * i] = report.entries[i].destination;
        entries[3 * i + 1] = report.entries[i].backlog_bytes;
        entries[3 * i + 2] = report.entries[i].rate_kbps;
    }
    return report.count | report.flags << 16;
}

// Whether a message of a type that echoes this can be an answer.
bool shim_answers(const struct xco_core *core, int64_t now_ns, int type, uint64_t echo_sent_ns) {
    struct xco_message message = {.header.type = (uint8_t)type};
    if (type == XCO_DIRECTIVE) {
        message.body.directive.echo_sent_ns = echo_sent_ns;
    } else {
        message.body.welcome.echo_sent_ns = echo_sent_ns;
    }
    return xco_core_answers(core, now_ns, &message);
}

static int64_t clock_now_ns, clock_step_ns; // of the test's clock

static int64_t step_clock(clockid_t clock) {
    (void)clock;
    return clock_now_ns += clock_step_ns;
}

// The arrival of a datagram with this stamp, on a clock that every reading sets forward.
int64_t shim_arrival(int64_t stamp_ns, int64_t now_ns, int64_t step_ns) {
    _Alignas(8) uint8_t control[64] = {0};
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct timespec stamp = {.tv_sec = stamp_ns / 1000000000, .tv_nsec = stamp_ns % 1000000000};
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    *first = (struct cmsghdr){CMSG_LEN(sizeof stamp), SOL_SOCKET, SCM_TIMESTAMPNS};
    memcpy(CMSG_DATA(first), &stamp, sizeof stamp);
    clock_now_ns = now_ns;
    clock_step_ns = step_ns;
    return xco_arrival_ns(&message, step_clock);
}

// Learns one exchange; the offset that is best then.
int64_t shim_offset(const int64_t (*exchanges)[4], int count, int64_t now_ns, int64_t *way_ns) {
    struct xco_clock clock = {0};
    for (int i = 0; i < count; i++) {
        xco_clock_learn(&clock, &(struct xco_exchange){exchanges[i][0], exchanges[i][1],
                                                       exchanges[i][2], exchanges[i][3]});
    }
    const struct xco_clock_sample *best = xco_clock_best(&clock, now_ns);
    *way_ns = best == NULL ? -1 : best->way_ns;
    return best == NULL ? 0 : best->offset_ns;
}

struct xco_flows *shim_flows(uint32_t large_bytes, int64_t window_ns, int64_t idle_ns) {
    struct xco_flows *flows = calloc(1, sizeof *flows);
    if (flows != NULL) {
        flows->large_bytes = large_bytes;
        flows->window_ns = window_ns;
        flows->idle_ns = idle_ns;
    }
    return flows;
}

bool shim_see(struct xco_flows *flows, int64_t now_ns, uint32_t source, uint32_t bytes,
              bool crowded) {
    struct xco_sight sight = {.bytes = bytes};
    int64_t since_ns;
    memcpy(&sight.pair.source, &source, sizeof source);
    return xco_flows_see(flows, now_ns, &sight, crowded, &since_ns);
}

// Enters flows to destinations outside the topology as long as there is room; how many.
int shim_add_outside(struct xco_flows *flows, int64_t now_ns) {
    int count = 0;
    for (uint32_t source = 0; xco_flows_room(flows, XCO_OUTSIDE, 0); count++, source++) {
        struct xco_pair pair = {0};
        memcpy(&pair.destination, &source, sizeof source);
        xco_flows_add(flows, now_ns, &pair, XCO_OUTSIDE);
    }
    return count;
}

// Leaves out IPv4 flows from one source to so many destinations in a row.
int shim_except(int watch, uint32_t source, uint32_t first, uint32_t count) {
    static struct xco_pair pairs[XCO_FLOWS];
    for (uint32_t i = 0; i < count && i < XCO_FLOWS; i++) {
        const struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
        pairs[i] = (struct xco_pair){mapped, mapped};
        pairs[i].source.s6_addr32[3] = htonl(source);
        pairs[i].destination.s6_addr32[3] = htonl(first + i);
    }
    return xco_watch_except(watch, 128, pairs, count);
}

int shim_add(struct xco_flows *flows, int64_t now_ns, uint32_t source) {
    struct xco_pair pair = {0};
    memcpy(&pair.source, &source, sizeof source);
    return xco_flows_add(flows, now_ns, &pair, 0);
}

// Reads a packet's head: its IP length and whether it is one; the addresses go to `pair`.
int64_t shim_sight(const uint8_t *packet, size_t length, uint8_t pair[32]) {
    struct xco_sight sight;
    if (!xco_sight_of(packet, length, &sight)) {
        return -1;
    }
    memcpy(pair, &sight.pair, 32);
    return sight.bytes;
}

// Reads a configuration; empty: it is good. The host of `address` goes to `host`.
void shim_config(const char *text, const char *address, int *host, char *message, size_t room) {
    struct xco_coordinator_config config;
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    message[0] = '\0';
    if (file != NULL) {
        xco_config_read(&config, file, message, room);
        fclose(file);
        struct in6_addr wanted;
        *host = inet_pton(AF_INET6, address, &wanted) == 1 ? xco_config_host(&config, &wanted) : -1;
        xco_config_free(&config);
    }
}

void shim_only_pace(struct xco_core *core) {
    core->config.paced = true;
}
