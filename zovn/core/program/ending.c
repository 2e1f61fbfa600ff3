/* The switch has counted these frames as delivered: only their port knows better. */
#include "program/ending.h"

#include <inttypes.h>

#include "system/log.h"

struct ending {
    struct zovn_port *port;
    void (*end)(struct zovn_port *port);
};

static void call(void *context) {
    const struct ending *ending = context;
    ending->end(ending->port);
}

static uint64_t lost_of(struct zovn_line *line) {
    struct zovn_line_state state;
    zovn_line_look(line, &state);
    return state.port.counters.overruns;
}

void zovn_ending_detach(struct zovn_line *line, struct zovn_port *port,
                        void (*end)(struct zovn_port *port)) {
    struct ending ending = {port, end};
    uint64_t before = lost_of(line);
    if (end)
        zovn_forwarder_call(line->forwarder, call, &ending);
    zovn_line_detach(line);
    uint64_t lost = lost_of(line) - before;
    if (lost)
        zovn_say("%s: %" PRIu64 " frames are lost at its interface", line->options.name, lost);
}
