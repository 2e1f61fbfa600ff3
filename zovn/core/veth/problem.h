/* What keeps an interface from being a port, in words. */
#ifndef ZOVN_VETH_PROBLEM_H
#define ZOVN_VETH_PROBLEM_H

#include <stdbool.h>

#include "veth/interface.h"

#define ZOVN_IN_USE "another program uses it (XDP); stop that first"

/* Write `interface: what` and return false. */
bool zovn_problem_say(char *problem, const char *interface, const char *what);

/* Write that something cannot be done, with the reason of a negative errno, and return false. */
bool zovn_problem_refuse(char *problem, const char *interface, const char *what, int error);

/* Look an interface up; return whether it is a veth. */
bool zovn_problem_look_up(struct zovn_interface *interface, const char *name, char *problem);

#endif
