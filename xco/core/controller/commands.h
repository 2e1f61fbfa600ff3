// Commands on a Unix socket, one per packet, each answered by a packet: `epoch NUMBER`, `reload`,
// `strategy NAME`, `stop`, `ping`; answers are `ok` or `error: ...`.
#ifndef XCO_CONTROLLER_COMMANDS_H
#define XCO_CONTROLLER_COMMANDS_H

#include <stdbool.h>

#include "controller/state.h"

// Opens the socket if the configuration names one; false: `problem` says why it failed.
bool xco_command_open(struct xco_shell *shell, char problem[XCO_CONFIG_PROBLEM_BYTES]);
void xco_command_close(struct xco_shell *shell);

// Accepts a new client; carries out a client's command (false: the descriptor is neither).
void xco_command_accept(struct xco_shell *shell);
bool xco_command_serve(struct xco_shell *shell, int descriptor);

#endif
