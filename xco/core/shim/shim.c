// The shim's BPF programs: loads, attaches and reads them (shim/shim.bpf.c).
#include "shim/shim.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Of Linux 6.6 (BPF_TCX_INGRESS, BPF_TCX_EGRESS); headers may be older.
#define TCX_INGRESS 46
#define TCX_EGRESS 47

static char problem[256];

// Keeps the first line of libbpf's warnings.
static int note_problem(enum libbpf_print_level level, const char *format, va_list values) {
    if (level == LIBBPF_WARN && problem[0] == '\0') {
        vsnprintf(problem, sizeof problem, format, values);
        problem[strcspn(problem, "\n")] = '\0';
    }
    return 0;
}

const char *xco_shim_problem(void) {
    return problem;
}

// Opens the file; sets the number of hosts and the programs' constants.
static int open_object(struct xco_shim *shim, const char *file,
                       const struct xco_shim_terms *terms) {
    if (access(file, R_OK) < 0) {
        return -errno;
    }
    shim->object = bpf_object__open_file(file, NULL);
    if (shim->object == NULL) {
        return -errno;
    }
    struct bpf_map *sources = bpf_object__find_map_by_name(shim->object, "sources");
    struct bpf_map *constants = bpf_object__find_map_by_name(shim->object, ".rodata.terms");
    if (sources == NULL || constants == NULL ||
        bpf_map__set_max_entries(sources, terms->hosts + 1) < 0) {
        return -EINVAL;
    }
    return bpf_map__set_initial_value(constants, terms, sizeof *terms);
}

static int map_of(const struct xco_shim *shim, const char *name) {
    return bpf_object__find_map_fd_by_name(shim->object, name);
}

static void *shared(const struct xco_shim *shim, const char *name, size_t *bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *bytes = (*bytes + page - 1) / page * page;
    void *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map_of(shim, name), 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int share(struct xco_shim *shim) {
    shim->count_bytes = (shim->hosts + 1) * sizeof *shim->counts;
    shim->kind_bytes = sizeof *shim->kinds;
    shim->counts = shared(shim, "sources", &shim->count_bytes);
    shim->kinds = shared(shim, ".data.kinds", &shim->kind_bytes);
    shim->places = map_of(shim, "places");
    return shim->counts == NULL || shim->kinds == NULL ? -EOPNOTSUPP : 0;
}

int xco_shim_open(struct xco_shim *shim, const char *file, const struct xco_shim_terms *terms) {
    *shim = (struct xco_shim){.in = -1, .out = -1, .places = -1, .hosts = terms->hosts};
    problem[0] = '\0';
    libbpf_set_print(note_problem);
    int error = open_object(shim, file, terms);
    if (error == 0) {
        int refused = bpf_object__load(shim->object);
        error = refused == 0 ? share(shim) : refused == -EPERM ? -EPERM : -EOPNOTSUPP;
    }
    if (error != 0) {
        xco_shim_close(shim);
    }
    return error;
}

static int attach(const struct xco_shim *shim, const char *name, unsigned interface, int hook) {
    const struct bpf_program *program = bpf_object__find_program_by_name(shim->object, name);
    if (program == NULL) {
        return -EINVAL;
    }
    int link =
        bpf_link_create(bpf_program__fd(program), (int)interface, (enum bpf_attach_type)hook, NULL);
    return link < 0 && errno == EINVAL ? -EOPNOTSUPP : link < 0 ? -errno : link;
}

static void detach(int *link) {
    if (*link >= 0) {
        close(*link);
    }
    *link = -1;
}

int xco_shim_attach(struct xco_shim *shim, unsigned interface) {
    detach(&shim->in);
    detach(&shim->out);
    shim->in = attach(shim, "xco_shim_in", interface, TCX_INGRESS);
    if (shim->in < 0) {
        int error = shim->in;
        shim->in = -1;
        return error;
    }
    shim->out = attach(shim, "xco_shim_out", interface, TCX_EGRESS);
    if (shim->out < 0) {
        int error = shim->out;
        shim->out = -1;
        detach(&shim->in);
        return error;
    }
    return 0;
}

static void unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

void xco_shim_close(struct xco_shim *shim) {
    detach(&shim->in);
    detach(&shim->out);
    unmap(shim->counts, shim->count_bytes);
    unmap(shim->kinds, shim->kind_bytes);
    bpf_object__close(shim->object);
    *shim = (struct xco_shim){.in = -1, .out = -1, .places = -1};
}

int xco_shim_place(struct xco_shim *shim, const struct xco_place *place, uint16_t host) {
    uint32_t value = host;
    __atomic_fetch_or(shim->kinds, XCO_KIND_BIT(place->kind, place->vlan), __ATOMIC_RELEASE);
    return bpf_map_update_elem(shim->places, place, &value, BPF_ANY) < 0 ? -errno : 0;
}

int xco_shim_displace(struct xco_shim *shim, const struct xco_place *place) {
    return bpf_map_delete_elem(shim->places, place) < 0 ? -errno : 0;
}

struct xco_shim_counts xco_shim_counts(const struct xco_shim *shim, unsigned host) {
    const struct xco_shim_counts *counts = &shim->counts[host];
    // read marks first: packets that come between the reads are then counted as unmarked
    uint64_t marks = __atomic_load_n(&counts->marks, __ATOMIC_ACQUIRE);
    return (struct xco_shim_counts){
        .packets = __atomic_load_n(&counts->packets, __ATOMIC_ACQUIRE),
        .bytes = __atomic_load_n(&counts->bytes, __ATOMIC_ACQUIRE),
        .marks = marks,
    };
}
