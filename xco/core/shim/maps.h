/* Memory shared by the shim's BPF programs and the coordinator. */
#ifndef XCO_SHIM_MAPS_H
#define XCO_SHIM_MAPS_H

#include <linux/types.h>

/* What came from one host since the start; a batch of merged packets counts as so many. */
struct xco_shim_counts {
    __u64 packets;
    __u64 bytes;
    __u64 marks; /* of the packets: congestion experienced */
};

/* Constants of the programs, set before they are loaded. */
struct xco_shim_terms {
    __u32 hosts; /* the counts after the last are those of all other sources */
    __u32 keep;  /* guests set and see their own bits */
};

#endif
