// The controller's socket, timer and signals: what the loop waits for and sends on.
#ifndef XCO_CONTROLLER_SHELL_H
#define XCO_CONTROLLER_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/state.h"

uint64_t xco_shell_now(void); // CLOCK_MONOTONIC in ns, as in messages

// Opens everything but the command socket and the statistics; false: `problem` says what failed.
// Close it in either case.
bool xco_shell_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_shell_close(struct xco_shell *shell);

// Watches a descriptor for input; false with errno.
bool xco_shell_watch(const struct xco_shell *shell, int descriptor);

// Returns where to keep a host's address; the host may be outside the topology.
struct xco_socket_address *xco_shell_address(struct xco_shell *shell, uint16_t host);

// Applies the present loop file; false: continues as before, and `problem` says why.
bool xco_shell_reload(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);

#endif
