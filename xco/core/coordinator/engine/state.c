// Finds a local coordinator's state of a destination.
#include "coordinator/engine/state.h"

int xco_core_find(const struct xco_core *core, uint16_t host) {
    for (unsigned gate = 0; gate < XCO_GATES; gate++) {
        if (core->destinations[gate].used && core->destinations[gate].host == host) {
            return (int)gate;
        }
    }
    return -1;
}
