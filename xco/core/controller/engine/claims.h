// Which host has which address.
#ifndef XCO_CONTROLLER_ENGINE_CLAIMS_H
#define XCO_CONTROLLER_ENGINE_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/engine/state.h"

bool xco_claims_init(struct xco_control *core); // false: out of memory
void xco_claims_free(struct xco_control *core);

// Takes a host's report of the addresses behind it.
enum xco_receive_result xco_claims_told(struct xco_control *core, uint64_t now_ns, uint32_t host,
                                        const struct xco_map *map);

// Repeats to a host what it has not heard.
void xco_claims_care(struct xco_control *core, uint64_t now_ns, uint32_t host);

// Writes the changes that a host lacks.
void xco_claims_take(struct xco_control *core, uint64_t now_ns, uint32_t host, struct xco_map *map);

#endif
