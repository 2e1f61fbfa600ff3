/* What was sent and received, as JSON: pairs with what they lost, and how far sinks were used. */
#include <inttypes.h>

#include "tools/generator.h"

static uint64_t held_for(const struct generator_station *station, uint16_t to) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < station->held_count; i++)
        count += station->held_to[(station->held_first + i) % GENERATOR_HELD] == to;
    return count;
}

static void print_sent(const struct generator_station *station, FILE *to) {
    const char *before = "";
    fprintf(to, "\"sent\": {");
    for (uint16_t i = 0; i < GENERATOR_STATIONS; i++) {
        if (!station->made[i])
            continue;
        fprintf(to, "%s\"%d\": %" PRIu64, before, i, station->made[i] - held_for(station, i));
        before = ", ";
    }
    fprintf(to, "}");
}

static void print_received(const struct generator_station *station, FILE *to) {
    const char *before = "";
    fprintf(to, "\"received\": {");
    for (uint16_t i = 0; i < GENERATOR_STATIONS; i++) {
        const struct generator_tally *tally = &station->from[i];
        if (!tally->received)
            continue;
        fprintf(to,
                "%s\"%d\": {\"frames\": %" PRIu64 ", \"repeated\": %" PRIu64
                ", \"overtaken\": %" PRIu64 ", \"in_time\": %" PRIu64 "}",
                before, i, tally->received, tally->repeated, tally->overtaken, tally->in_time);
        before = ", ";
    }
    fprintf(to, "}");
}

void generator_print(const struct generator *generator, FILE *to) {
    fprintf(to, "{\"seconds\": %.6f, \"hz\": %" PRIu64 ", \"stations\": [", generator->took_s,
            generator->hz);
    for (uint16_t i = 0; i < generator->count; i++) {
        const struct generator_station *station = &generator->stations[i];
        fprintf(to, "%s{\"number\": %d, \"granted\": %.0f, \"in_time\": %" PRIu64 ", ",
                i ? ", " : "", station->number, station->granted, station->in_time);
        print_sent(station, to);
        fprintf(to, ", ");
        print_received(station, to);
        fprintf(to, "}");
    }
    fprintf(to, "]}\n");
}
