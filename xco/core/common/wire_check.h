// The rules that a message keeps, whichever way it goes; part of common/wire.c.
#ifndef XCO_COMMON_WIRE_CHECK_H
#define XCO_COMMON_WIRE_CHECK_H

#include <stdbool.h>

#include "common/message.h"

// Whether a message keeps the rules of docs/xco-protocol.md, as far as one message can.
bool xco_wire_is_sound(const struct xco_message *message);

#endif
