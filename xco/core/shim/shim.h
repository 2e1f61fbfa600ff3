// The shim's BPF programs: loads, attaches and reads them (shim/shim.bpf.c).
#ifndef XCO_SHIM_SHIM_H
#define XCO_SHIM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "common/place.h"
#include "shim/maps.h"

struct bpf_object;

struct xco_shim {
    struct bpf_object *object;
    int in, out, places; // links, and a map; -1 without
    struct xco_shim_counts *counts;
    uint32_t *kinds;
    size_t count_bytes, kind_bytes;
    unsigned hosts;
};

// Loads the programs of an object file. Returns 0, or a negative errno: -EPERM (CAP_BPF and
// CAP_NET_ADMIN are needed), -ENOENT (there is no such file), -EOPNOTSUPP (this kernel cannot run
// them; xco_shim_problem has libbpf's reason).
int xco_shim_open(struct xco_shim *shim, const char *file, const struct xco_shim_terms *terms);

// Attaches them to the interface of this index, before all filters, and to no other. The kernel detaches them when
// this process ends, however it ends. Returns 0 or a negative errno: -EOPNOTSUPP (before Linux 6.6).
int xco_shim_attach(struct xco_shim *shim, unsigned interface);
void xco_shim_close(struct xco_shim *shim);

// The last complaint of libbpf.
const char *xco_shim_problem(void);

// Sets the host of an address; 0 or a negative errno (-E2BIG: full).
int xco_shim_place(struct xco_shim *shim, const struct xco_place *place, uint16_t host);
int xco_shim_displace(struct xco_shim *shim, const struct xco_place *place);

// Returns what came from a host, or (`hosts`) from all others, without a system call.
struct xco_shim_counts xco_shim_counts(const struct xco_shim *shim, unsigned host);

#endif
