/* Says whether this kernel lets a veth be without loss.
 *
 * Usage: zovn-veth-probe. Prints `lossless`, or `lossy on this kernel: WHY` and exits with 1. */
#include <stdio.h>

#include "veth/probe.h"
#include "veth/veth_port.h"

int main(void) {
    char why[ZOVN_VETH_PROBLEM];
    bool lossless = zovn_veth_probe(why);
    if (lossless)
        puts("lossless");
    else
        printf("lossy on this kernel: %s\n", why);
    return !lossless;
}
