/* Whether this kernel lets a veth be without loss: tried, in a network namespace of its own. */
#ifndef ZOVN_VETH_PROBE_H
#define ZOVN_VETH_PROBE_H

#include <stdbool.h>

#pragma GCC visibility push(default)

/* Flood a port that is not stepped for a moment, and return whether nothing is lost. If not, `why`,
 * of ZOVN_VETH_PROBLEM bytes, says why. The calling thread leaves its network namespace meanwhile.
 * Needs root; takes some 50 ms. */
bool zovn_veth_probe(char *why);

#pragma GCC visibility pop
#endif
