// The queues with departure times: fq, below mq one for each transmit queue.
#include "qdisc/paced.h"

#include <errno.h>

#include <linux/pkt_sched.h>

#include "qdisc/parts.h"

#define ROOT_FLAGS (NLM_F_CREATE | NLM_F_EXCL)
#define QUEUES_MAX 4096u

// One fq as the root: where there is one transmit queue.
static int build_single(struct xco_gate *gate) {
    xco_batch_clear(&gate->batch);
    xco_part_fq(&gate->batch, gate->tree.interface, TC_H_ROOT, XCO_ROOT, ROOT_FLAGS);
    return xco_gate_send(gate, &gate->batch, NULL);
}

// Replaces the kernel's queues below mq; stops at the first transmit queue that does not exist.
static int fill(struct xco_gate *gate) {
    for (uint32_t queue = 1; queue <= QUEUES_MAX; queue++) {
        xco_batch_clear(&gate->batch);
        xco_part_fq(&gate->batch, gate->tree.interface, XCO_ROOT | queue, 0,
                    NLM_F_CREATE | NLM_F_REPLACE);
        int error = xco_gate_send(gate, &gate->batch, NULL);
        if (error != 0) {
            return queue == 1 || error == -EPERM ? error : 0;
        }
    }
    return 0;
}

int xco_gate_build_paced(struct xco_gate *gate, bool *foreign) {
    xco_batch_clear(&gate->batch);
    xco_part_mq(&gate->batch, gate->tree.interface, XCO_ROOT, ROOT_FLAGS);
    int error = xco_gate_send(gate, &gate->batch, NULL);
    if (error == 0) {
        error = fill(gate);
    } else if (error == -EOPNOTSUPP) { // it has one transmit queue
        error = build_single(gate);
    }
    *foreign = error == -EEXIST;
    gate->lacking = error == -ENOENT ? "fq" : gate->lacking;
    return error;
}
