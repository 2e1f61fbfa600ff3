/* The kinds of interfaces that can be ports. */
#ifndef ZOVN_PROGRAM_DRIVERS_H
#define ZOVN_PROGRAM_DRIVERS_H

#include "program/interface_port.h"

extern const struct zovn_interface_driver ZOVN_VETH_DRIVER, ZOVN_TAP_DRIVER;

#endif
