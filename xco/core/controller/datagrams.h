// Receives and sends datagrams in batches, and remembers each host's address.
#ifndef XCO_CONTROLLER_DATAGRAMS_H
#define XCO_CONTROLLER_DATAGRAMS_H

#include <stdint.h>

#include "controller/state.h"

// Receives datagrams, a limited number per turn.
void xco_shell_receive(struct xco_shell *shell);

// Sends all messages that are due.
void xco_shell_send(struct xco_shell *shell, uint64_t now_ns);

#endif
