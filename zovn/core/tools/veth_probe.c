/* Says whether this kernel lets a veth be without loss.
 *
 * Usage: zovn-veth-probe. Prints `lossless`, `lossy on this kernel: WHY`, or `unknown: WHY`; exit codes 0, 1, 2. */
#include <stdio.h>

#include "veth/probe.h"
#include "veth/veth_port.h"

int main(void) {
    static const struct {
        const char *says;
        int code;
    } RESULTS[] = {
        [ZOVN_VETH_LOSSLESS] = {"lossless", 0},
        [ZOVN_VETH_LOSSY] = {"lossy on this kernel: ", 1},
        [ZOVN_VETH_UNKNOWN] = {"unknown: ", 2},
    };
    char why[ZOVN_VETH_PROBLEM];
    enum zovn_veth_probed result = zovn_veth_probe(why);
    printf("%s%s\n", RESULTS[result].says, why);
    return RESULTS[result].code;
}
