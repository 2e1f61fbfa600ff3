/* Undoes what a killed switch left at interfaces, and says so. */
#include "program/release.h"

#include <net/if.h>
#include <stdio.h>

#include "veth/veth_port.h"

static const char *const WORDS[] = {
    [ZOVN_VETH_REFUSED] = "refused",
    [ZOVN_VETH_CLEAN] = "clean",
    [ZOVN_VETH_RELEASED] = "released",
};

static bool release(const char *interface) {
    char problem[ZOVN_VETH_PROBLEM] = "";
    if (!if_nametoindex(interface)) {
        printf("%s missing\n", interface);
        return true;
    }
    enum zovn_veth_released result = zovn_veth_release(interface, problem);
    printf("%s %s %s\n", interface, WORDS[result], problem);
    return result != ZOVN_VETH_REFUSED;
}

bool zovn_release(char *const *interfaces) {
    bool good = true;
    for (; *interfaces; interfaces++)
        good &= release(*interfaces);
    return good;
}
