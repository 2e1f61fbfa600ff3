// Simulated hosts: HELLO until they have joined, then reports by their roles.
#include "tools/load_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/load_random.h"

#define RACK 20u
#define ROW 10u // racks
#define FIRST_OF_TRIO 17u
#define PATIENCE_NS 100000000u // a later answer counts as lost
#define MS 1000000u
#define BACKLOG 1000000u
#define RATE_KBPS 900000u
#define REACTIONS_MAX 1000000u

static uint8_t role_of(uint32_t host, uint32_t count) {
    const bool whole = host / RACK * RACK + RACK <= count;
    return whole && host % RACK >= FIRST_OF_TRIO
               ? (uint8_t)(XCO_LOAD_ASKER + host % RACK - FIRST_OF_TRIO)
               : XCO_LOAD_SENDER;
}

static uint32_t destination_of(uint32_t host, uint32_t count) {
    if (role_of(host, count) != XCO_LOAD_SENDER) {
        return host / RACK * RACK + RACK - 1;
    }
    const uint32_t other = (host + count / 2) % count;
    return role_of(other, count) == XCO_LOAD_SENDER ? other : other - RACK / 2;
}

// The node of a host's rack: hosts are followed by the core, the rows and the racks.
static uint32_t rack_of(uint32_t host, uint32_t count) {
    const uint32_t racks = (count + RACK - 1) / RACK;
    return count + 1 + (racks + ROW - 1) / ROW + host / RACK;
}

static struct xco_load_host begun(uint32_t host, uint32_t count, uint32_t destinations) {
    struct xco_load_host begun = {
        .role = XCO_LOAD_SENDER,
        .destination = (uint16_t)((host + 1) % count),
        .destinations = (uint16_t)destinations,
        .port.counts = {.source = rack_of(host, count), .target = host},
    };
    if (destinations == 0) {
        begun.role = role_of(host, count);
        begun.destination = (uint16_t)destination_of(host, count);
        begun.destinations = 1;
    }
    return begun;
}

bool xco_load_init(struct xco_load *load, uint32_t count, uint32_t destinations,
                   uint64_t sequence) {
    *load =
        (struct xco_load){.count = count, .sequence = sequence, .random = 1, .room = REACTIONS_MAX};
    load->hosts = calloc(count, sizeof *load->hosts);
    load->reactions_ns = calloc(load->room, sizeof *load->reactions_ns);
    for (uint32_t host = 0; load->hosts != NULL && host < count; host++) {
        load->hosts[host] = begun(host, count, destinations);
    }
    return load->hosts != NULL && load->reactions_ns != NULL;
}

void xco_load_free(struct xco_load *load) {
    free(load->hosts);
    free(load->reactions_ns);
}

// An asker requests a turn, uses it for a while, gives it up, pauses, and requests again.
static void next_phase(struct xco_load *load, struct xco_load_host *host,
                       const struct xco_load_instant *at) {
    load->unanswered += host->phase == XCO_LOAD_ASKED;
    if (host->phase == XCO_LOAD_ANSWERED) {
        host->phase = XCO_LOAD_IDLE;
        host->next_ns = at->now_ns + 3 * MS + xco_load_draw(&load->random, 5 * MS);
        return;
    }
    host->phase = XCO_LOAD_ASKED;
    host->next_ns = at->now_ns + PATIENCE_NS;
    host->sent_ns = at->now_ns;
    host->sent_wall_ns = at->wall_ns;
}

// Says that the host has sent to all of its destinations alike, as fast as its link carries.
static void fill(const struct xco_load *load, const struct xco_load_host *host, uint32_t backlog,
                 uint64_t now_ns, struct xco_report *report) {
    report->count = host->destinations;
    for (uint16_t i = 0; i < host->destinations; i++) {
        report->entries[i] = (struct xco_waiting){
            .destination = (uint16_t)((host->destination + i) % load->count),
            .backlog_bytes = backlog,
            .rate_kbps = RATE_KBPS / host->destinations,
            .sent_bytes = now_ns / 8 / host->destinations,
        };
    }
}

static void report(struct xco_load *load, struct xco_load_host *host,
                   const struct xco_load_instant *at, struct xco_report *report) {
    *report = (struct xco_report){.directive_sequence = host->heard_sequence};
    if (host->role == XCO_LOAD_ASKER) {
        next_phase(load, host, at);
        report->gave_up_sequence = host->gave_up_sequence;
    }
    const bool waits = host->role == XCO_LOAD_SENDER || host->phase == XCO_LOAD_ASKED;
    if (waits || host->role == XCO_LOAD_RIVAL) {
        fill(load, host, waits ? BACKLOG : 0, at->now_ns, report);
    }
}

void xco_load_speak(struct xco_load *load, uint32_t host, const struct xco_load_instant *at,
                    struct xco_message *message) {
    struct xco_load_host *speaker = &load->hosts[host];
    message->header = (struct xco_header){XCO_HELLO, (uint16_t)host, speaker->epoch,
                                          ++load->sequence, at->now_ns};
    if (!speaker->joined) {
        memcpy(message->body.hello.digest, load->digest, XCO_DIGEST_BYTES);
        speaker->next_ns = at->now_ns + PATIENCE_NS;
        return;
    }
    message->header.type = XCO_REPORT;
    report(load, speaker, at, &message->body.report);
}

bool xco_load_speak_port(struct xco_load *load, uint32_t host, const struct xco_load_instant *at,
                         struct xco_message *message) {
    struct xco_load_host *speaker = &load->hosts[host];
    const bool receives = speaker->role == XCO_LOAD_SENDER || speaker->role == XCO_LOAD_RECEIVER;
    if (!speaker->joined || !speaker->reports_port || !receives) {
        return false;
    }
    xco_load_port_pass(&speaker->port, at->now_ns, &load->random);
    message->header =
        (struct xco_header){XCO_PORT, (uint16_t)host, speaker->epoch, ++load->sequence, at->now_ns};
    message->body.ports = (struct xco_ports){.count = 1, .entries = {speaker->port.counts}};
    memcpy(message->body.ports.digest, load->nodes_digest, XCO_DIGEST_BYTES);
    return true;
}

static bool permits(const struct xco_directive *directive, uint16_t destination) {
    for (size_t i = 0; i < directive->count; i++) {
        if (directive->entries[i].destination == destination) {
            return true;
        }
    }
    return false;
}

static void take_answer(struct xco_load *load, struct xco_load_host *host,
                        const struct xco_load_instant *at, uint64_t sequence) {
    if (load->reactions < load->room && at->wall_ns > host->sent_wall_ns) {
        load->reactions_ns[load->reactions++] = at->wall_ns - host->sent_wall_ns;
    }
    host->phase = XCO_LOAD_ANSWERED;
    host->gave_up_sequence = sequence;
    host->next_ns = at->now_ns + MS + xco_load_draw(&load->random, 2 * MS);
}

static void hear_directive(struct xco_load *load, const struct xco_load_instant *at,
                           const struct xco_message *message) {
    const struct xco_directive *directive = &message->body.directive;
    struct xco_load_host *host = &load->hosts[directive->to];
    const uint64_t sequence = message->header.sequence;
    host->heard_sequence = sequence > host->heard_sequence ? sequence : host->heard_sequence;
    if (host->phase == XCO_LOAD_ASKED && directive->echo_sent_ns == host->sent_ns &&
        permits(directive, host->destination)) {
        take_answer(load, host, at, sequence);
    }
}

void xco_load_hear(struct xco_load *load, const struct xco_load_instant *at,
                   const struct xco_message *message) {
    if (message->header.type == XCO_DIRECTIVE && message->body.directive.to < load->count) {
        hear_directive(load, at, message);
    } else if (message->header.type == XCO_WELCOME && message->body.welcome.to < load->count) {
        struct xco_load_host *host = &load->hosts[message->body.welcome.to];
        host->joined = message->body.welcome.status == XCO_JOINED;
        host->reports_port = message->body.welcome.strategy == XCO_GCC;
        host->epoch = message->header.epoch;
        host->phase = XCO_LOAD_IDLE;
        host->next_ns = at->now_ns + xco_load_draw(&load->random, 8 * MS);
    }
}
