// The controller's socket, timer and signals: what the loop waits for, and what it sends by.
#ifndef XCO_CONTROLLER_SHELL_H
#define XCO_CONTROLLER_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/state.h"

uint64_t xco_shell_now(void); // CLOCK_MONOTONIC in ns, as messages have it

// Opens everything but the command socket and the statistics; false: `problem` says what could not be
// opened. Close it in either case.
bool xco_shell_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_shell_close(struct xco_shell *shell);

// Watches a descriptor for input; false with errno.
bool xco_shell_watch(const struct xco_shell *shell, int descriptor);

// Where the address of a host is kept that may be none of the topology's.
struct xco_socket_address *xco_shell_address(struct xco_shell *shell, uint16_t host);

// Goes over to what the loop file says now; false: goes on as before, and `problem` says why.
bool xco_shell_reload(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);

#endif
