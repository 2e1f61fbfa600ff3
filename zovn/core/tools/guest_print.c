/* What the ports of a guest sent and received, as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/guest.h"

static void print_tallies(const struct port *port) {
    const char *before = "";
    for (uint16_t i = 0; i < GUEST_STATIONS; i++) {
        const struct tally *tally = &port->from[i];
        if (!tally->received)
            continue;
        printf("%s\"%d\": {\"received\": %" PRIu64 ", \"repeated\": %" PRIu64
               ", \"overtaken\": %" PRIu64 ", \"gaps\": %" PRIu64 ", \"moved\": %" PRIu64
               ", \"queue\": %d}",
               before, i, tally->received, tally->repeated, tally->overtaken, tally->gaps,
               tally->moved, tally->queue);
        before = ", ";
    }
}

static uint64_t sent_by(const struct port *port) {
    uint64_t sent = 0;
    for (uint16_t i = 0; i < port->queues; i++)
        sent += port->sending[i].sent;
    return sent;
}

void guest_print(const struct port *ports, uint16_t count) {
    printf("{");
    for (uint16_t i = 0; i < count; i++) {
        const struct port *port = &ports[i];
        printf("%s\"%d\": {\"to\": %d, \"sent\": %" PRIu64 ", \"from\": {", i ? ", " : "",
               port->station, port->to, sent_by(port));
        print_tallies(port);
        printf("}}");
    }
    printf("}\n");
}
