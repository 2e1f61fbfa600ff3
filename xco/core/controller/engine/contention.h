// Which hosts are coordinated.
#ifndef XCO_CONTROLLER_ENGINE_CONTENTION_H
#define XCO_CONTROLLER_ENGINE_CONTENTION_H

#include <stdint.h>

#include "controller/engine/state.h"

void xco_contention_census(struct xco_control *core, uint64_t now_ns);

#endif
