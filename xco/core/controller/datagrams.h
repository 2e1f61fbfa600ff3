// Receives and sends datagrams in batches, and remembers where each host's come from.
#ifndef XCO_CONTROLLER_DATAGRAMS_H
#define XCO_CONTROLLER_DATAGRAMS_H

#include <stdint.h>

#include "controller/state.h"

// Takes datagrams that have arrived, so many a turn.
void xco_shell_receive(struct xco_shell *shell);

// Sends all that is due.
void xco_shell_send(struct xco_shell *shell, uint64_t now_ns);

#endif
