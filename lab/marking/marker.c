/* Attaches the marking program to a port, and reports its counts as the traffic program does.
 *
 * Usage: marker --object FILE --interface NAME --low BYTES --high BYTES [--phantom BYTES_PER_S]
 *               [--most BYTES]
 * The kernel detaches the program when this process ends, however it ends. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include "common.h"
#include "port.h"

#define TCX_EGRESS 47 /* BPF_TCX_EGRESS of Linux 6.6; headers may be older */

static int log_warnings(enum libbpf_print_level level, const char *format, va_list values) {
    return level == LIBBPF_WARN ? vfprintf(stderr, format, values) : 0;
}

static struct bpf_object *load(const char *file, const struct port_terms *terms) {
    struct bpf_object *object = bpf_object__open_file(file, NULL);
    if (object == NULL) {
        fail("%s", file);
    }
    struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata.terms");
    if (constants == NULL || bpf_map__set_initial_value(constants, terms, sizeof *terms) != 0) {
        fail("%s has no terms", file);
    }
    if (bpf_object__load(object) != 0) {
        fail("this kernel refuses the marking program (Linux 6.6 with BTF is needed)");
    }
    return object;
}

static void attach(const struct bpf_object *object, const char *interface) {
    unsigned index = if_nametoindex(interface);
    const struct bpf_program *program = bpf_object__find_program_by_name(object, "mark_port");
    if (index == 0 || program == NULL) {
        fail("%s", interface);
    }
    int link = bpf_link_create(bpf_program__fd(program), (int)index,
                               (enum bpf_attach_type)TCX_EGRESS, NULL);
    if (link < 0) {
        fail("%s: no program can be attached (Linux 6.6 is needed)", interface);
    }
}

static void write_counts(void *role) {
    const int *map = role;
    struct port_counts found;
    const uint32_t zero = 0;
    if (bpf_map_lookup_elem(*map, &zero, &found) != 0) {
        fail("the counts");
    }
    printf(",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"capable\":%" PRIu64,
           (uint64_t)found.packets, (uint64_t)found.bytes, (uint64_t)found.capable);
    printf(",\"marks\":%" PRIu64 ",\"queued_bytes\":%" PRIu64, (uint64_t)found.marks,
           (uint64_t)found.queued);
}

int main(int count, char **words) {
    const struct options options = {count - 1, words + 1};
    const struct port_terms terms = {
        .low = option_number(&options, "--low", 0),
        .high = option_number(&options, "--high", 0),
        .phantom_rate = option_number(&options, "--phantom", 0),
        .phantom_most = option_number(&options, "--most", 0),
    };
    libbpf_set_print(log_warnings);
    struct bpf_object *object = load(option_needed(&options, "--object"), &terms);
    attach(object, option_needed(&options, "--interface"));
    int map = bpf_object__find_map_fd_by_name(object, "counts");
    say_ready();
    while (obey(write_counts, &map)) {
    }
    return 0;
}
