// The queues where packets have times of departure: fq, below mq one for each transmit queue.
//
//   7c01: mq                  the root; our mark
//   └── 7c01:n  fq            of transmit queue n; holds each packet until its time
//
// An interface with one transmit queue has fq as its root. The program xco_pace at the egress hook
// gives the times (qdisc/pace.bpf.h); tc-fq(8), tc-mq(8).
#ifndef XCO_QDISC_PACED_H
#define XCO_QDISC_PACED_H

#include <stdbool.h>

#include "qdisc/connection.h"

// Builds the queues. 0 or a negative errno: -EEXIST and `foreign` if another program's root is
// installed; -ENOENT if the kernel has no fq, which `lacking` then names.
int xco_gate_build_paced(struct xco_gate *gate, bool *foreign);

#endif
