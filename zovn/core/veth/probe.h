/* Whether this kernel lets a veth be without loss: tried, in a network namespace of its own. */
#ifndef ZOVN_VETH_PROBE_H
#define ZOVN_VETH_PROBE_H

#pragma GCC visibility push(default)

enum zovn_veth_probed {
    ZOVN_VETH_LOSSY,
    ZOVN_VETH_LOSSLESS,
    ZOVN_VETH_UNKNOWN, /* it could not be tried */
};

/* Flood a port that is not stepped for a moment, and return whether something is lost. `why`, of
 * ZOVN_VETH_PROBLEM bytes, says why it is not lossless. The calling thread leaves its network namespace
 * meanwhile. Needs root; takes some 50 ms. */
enum zovn_veth_probed zovn_veth_probe(char *why);

#pragma GCC visibility pop
#endif
