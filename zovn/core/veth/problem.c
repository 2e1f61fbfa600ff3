/* What keeps an interface from being a port, in words. */
#include "veth/problem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "veth/veth_port.h"

bool zovn_problem_say(char *problem, const char *interface, const char *what) {
    snprintf(problem, ZOVN_VETH_PROBLEM, "%s: %s", interface, what);
    return false;
}

bool zovn_problem_refuse(char *problem, const char *interface, const char *what, int error) {
    snprintf(problem, ZOVN_VETH_PROBLEM, "%s: cannot %s: %s", interface, what, strerror(-error));
    return false;
}

bool zovn_problem_look_up(struct zovn_interface *interface, const char *name, char *problem) {
    int error = zovn_interface_look_up(interface, name);
    if (error == -ENODEV)
        return zovn_problem_say(problem, name,
                                "there is no such interface in this network namespace");
    if (error == -ENOTSUP)
        return zovn_problem_say(problem, name, "not a veth; name the host's end of one");
    return !error || zovn_problem_refuse(problem, name, "look it up", error);
}
