// Rules of messages in both directions; part of common/wire.c.
#ifndef XCO_COMMON_WIRE_CHECK_H
#define XCO_COMMON_WIRE_CHECK_H

#include <stdbool.h>

#include "common/message.h"

// Whether a message keeps the rules of docs/reference/xco-protocol.md that need no other message.
bool xco_wire_is_sound(const struct xco_message *message);

#endif
