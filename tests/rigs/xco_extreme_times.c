// Lets a coordinator obey directives whose times are the extremes of what the wire permits.
//
// Built with the undefined-behaviour sanitizer: an overflow ends it.
#include <string.h>

#include "coordinator/engine/decide.h"
#include "coordinator/engine/engine.h"

static const uint64_t TIMES[] = {0, 1, UINT64_C(1000000000000), XCO_TIME_MAX - 1};
enum { COUNT = sizeof TIMES / sizeof TIMES[0], NOW = 1000000000 };

static struct xco_core core;
static struct xco_command commands[XCO_COMMANDS];

static void obey(uint64_t sent, uint64_t echo, uint64_t received, uint64_t start, uint64_t end) {
    struct xco_directive directive = {.mode = XCO_RATE,
                                      .count = 1,
                                      .start_ns = start,
                                      .end_ns = end,
                                      .echo_sent_ns = echo,
                                      .echo_received_ns = received};
    const struct xco_header header = {
        .type = XCO_DIRECTIVE, .host = XCO_CONTROLLER, .sent_ns = sent};
    directive.entries[0] = (struct xco_permit){1, 1000000};
    xco_core_directive(&core, NOW, &header, &directive);
    (void)xco_core_decide(&core, NOW, commands);
    (void)xco_core_alarm(&core, NOW);
}

int main(void) {
    const struct xco_core_config config = {.line_bps = 1000000000,
                                           .pace_ppm = 980000,
                                           .guard_ns = 60000000000,
                                           .hysteresis_ns = 50000,
                                           .heartbeat_ns = 5000000,
                                           .silence_ns = 50000000,
                                           .hello_ns = 100000000,
                                           .poll_open_ns = 50000};
    const struct xco_way way = {1, {0}, {1000000}};
    for (unsigned mix = 0; mix < COUNT * COUNT * COUNT * COUNT * COUNT; mix++) {
        xco_core_begin(&core, &config, 0);
        (void)xco_core_add(&core, 0, 1, &way);
        obey(TIMES[mix % COUNT], TIMES[mix / COUNT % COUNT], TIMES[mix / 16 % COUNT], 0, 0);
        obey(TIMES[mix % COUNT], TIMES[mix / COUNT % COUNT], TIMES[mix / 16 % COUNT],
             TIMES[mix / 64 % COUNT], TIMES[mix / 256]);
    }
    return 0;
}
