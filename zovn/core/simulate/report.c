// The results of a run, as JSON. Times are in picoseconds.
#include <inttypes.h>

#include "report.h"

static const char *const NAMES[PLACES] = {
    "vm_to_host",
    "host_to_vm",
    "host_to_chassis",
    "chassis_to_host",
    "chassis_to_aggregation",
    "aggregation_to_chassis",
    "aggregation_to_core",
    "core_to_aggregation",
};

static void write_times(FILE *file, const char *name, const int64_t *times, uint32_t count) {
    fprintf(file, "\"%s\": [", name);
    for (uint32_t at = 0; at < count; at++)
        fprintf(file, "%s%" PRId64, at ? ", " : "", times[at]);
    fputs("],\n", file);
}

// A query that still runs counts with the time that it has taken so far.
static void write_queries(const struct queries *q, int64_t now_ps, FILE *file) {
    fputs("\"query_ps\": [", file);
    for (uint32_t at = 0; at < q->arrived; at++) {
        int64_t end = q->all[at].done_ps < 0 ? now_ps : q->all[at].done_ps;
        fprintf(file, "%s%" PRId64, at ? ", " : "", end - q->all[at].arrived_ps);
    }
    fprintf(file, "],\n\"unfinished\": %u,\n", q->count - q->done);
}

static void write_drops(const struct drops *drops, FILE *file) {
    fputs("\"drops\": {", file);
    for (enum place place = 0; place < PLACES; place++)
        fprintf(file, "\"%s\": [%" PRIu64 ", %" PRIu64 "], ", NAMES[place], drops->tail[place][0],
                drops->tail[place][1]);
    fprintf(file, "\"network_card\": [%" PRIu64 ", %" PRIu64 "]},\n", drops->full[0],
            drops->full[1]);
    fprintf(file, "\"overruns\": %" PRIu64 ",\n", drops->overrun);
}

// By place: bytes, the most that a receiver held of a queue, and times that one paused its sender.
static void write_links(const struct network *network, FILE *file) {
    int64_t bytes[PLACES] = {0}, held[PLACES] = {0};
    for (uint32_t at = 0; at < network->link_count; at++) {
        const struct link *link = &network->links[at];
        bytes[link->place] += link->bytes;
        if (link->most_held > held[link->place])
            held[link->place] = link->most_held;
    }
    fputs("\"links\": {", file);
    for (enum place place = 0; place < PLACES; place++)
        fprintf(file, "%s\"%s\": [%" PRId64 ", %" PRId64 ", %" PRIu64 "]", place ? ", " : "",
                NAMES[place], bytes[place], held[place], network->pauses[place]);
    fputs("},\n", file);
}

static void write_tcp(const struct tcp_counts *c, FILE *file) {
    fprintf(file,
            "\"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"retransmitted\": %" PRIu64
            ",\n\"timeouts\": %" PRIu64 ", \"recoveries\": %" PRIu64 ", \"reordered\": %" PRIu64
            ",\n",
            c->sent, c->received, c->retransmitted, c->timeouts, c->recoveries, c->reordered);
}

// Its rate is that while queries ran: later it only empties its sockets.
static void write_background(const struct background *b, int64_t now_ps, FILE *file) {
    fprintf(file,
            "\"background_flows\": %" PRIu64 ", \"datagrams_sent\": %" PRIu64
            ",\n\"datagrams_received\": %" PRIu64 ",\n",
            b->flows, b->sent, b->received);
    fprintf(file, "\"background_bytes\": %" PRIu64 ", \"background_ps\": %" PRId64 ",\n",
            b->stopped ? b->bytes_when_stopped : b->received_bytes,
            b->stopped ? b->stopped_ps : now_ps);
}

void report_write(const struct simulation *s, FILE *file) {
    fputs("{\n", file);
    write_queries(&s->queries, s->network.events.now_ps, file);
    write_times(file, "flow_ps", s->flows.done_ps, s->config.flow_count);
    write_drops(&s->network.drops, file);
    write_links(&s->network, file);
    write_tcp(&s->tcp.counts, file);
    write_background(&s->background, s->network.events.now_ps, file);
    fprintf(file, "\"left\": %u, \"events\": %" PRIu64 ", \"end_ps\": %" PRId64 "\n}\n",
            s->network.packets.used, s->handled, s->network.events.now_ps);
}
