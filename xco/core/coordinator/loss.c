// Loss of the queues: the interface is left as without a coordinator.
#include "coordinator/loss.h"

#include <string.h>
#include <unistd.h>

#include "coordinator/engine/engine.h"
#include "common/log.h"

void xco_queues_say_lost(const char *interface, uint64_t frames) {
    if (frames > 0) {
        xco_say("%s: %llu frames were lost while its queues were exchanged", interface,
                (unsigned long long)frames);
    }
}

void xco_queues_note_lost(struct xco_coordinator *c) {
    xco_queues_say_lost(c->config.interface, c->gate.lost);
    c->counts.exchange_lost += c->gate.lost;
    c->gate.lost = 0;
}

void xco_queues_lose(struct xco_coordinator *c, int error) {
    c->counts.gate_errors++;
    if (!c->present) {
        return;
    }
    xco_say("%s: its queues are lost (%s): its traffic is unshaped until they are created again",
            c->config.interface, strerror(-error));
    c->present = false;
    if (c->watch >= 0) {
        close(c->watch);
    }
    c->watch = -1;
    // gates that no process moves would hold traffic forever; fails if the tree is already gone
    xco_gate_remove(&c->gate);
    xco_queues_note_lost(c);
    xco_gate_close(&c->gate);
    xco_core_lost(&c->core);
}
