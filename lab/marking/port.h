/* What the marker and its BPF program share. */
#ifndef LAB_MARKING_PORT_H
#define LAB_MARKING_PORT_H

#include <linux/types.h>

/* Constants of the program, set before it is loaded. */
struct port_terms {
    __u64 low, high;    /* bytes: above low some packets are marked, above high all */
    __u64 phantom_rate; /* bytes/s that serve the phantom queue; 0: the real queue decides */
    __u64 phantom_most; /* bytes; a phantom queue has an end, too */
};

/* What passed the port since the start. */
struct port_counts {
    __u64 packets, bytes;
    __u64 capable; /* of the packets: ECN-capable, marked or not */
    __u64 marks;   /* of the packets: set here */
    __u64 queued;  /* bytes in the port's real queue as the last packet came */
};

#endif
