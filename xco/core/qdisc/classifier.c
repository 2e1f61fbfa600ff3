// The classifier's BPF programs: loads, attaches, fills and reads them (qdisc/classify.bpf.c).
#include "qdisc/classifier.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char problem[256];
static xco_notice_taker take_notice;

// Keeps the first line of libbpf's warnings: the log has no place for the rest.
static int note_problem(enum libbpf_print_level level, const char *format, va_list values) {
    if (level == LIBBPF_WARN && problem[0] == '\0') {
        vsnprintf(problem, sizeof problem, format, values);
        problem[strcspn(problem, "\n")] = '\0';
    }
    return 0;
}

const char *xco_classifier_problem(void) {
    return problem;
}

static int on_notice(void *context, void *data, size_t length) {
    if (length >= sizeof(struct xco_notice)) {
        take_notice(context, data);
    }
    return 0;
}

static int map_of(const struct xco_classifier *classifier, const char *name) {
    return bpf_object__find_map_fd_by_name(classifier->object, name);
}

static int program_of(const struct xco_classifier *classifier, const char *name) {
    struct bpf_program *program = bpf_object__find_program_by_name(classifier->object, name);
    return program == NULL ? -ENOENT : bpf_program__fd(program);
}

// Opens the file; sets the size of the table of hosts and the programs' constants.
static int open_object(struct xco_classifier *classifier, const char *file,
                       const struct xco_classify_terms *terms) {
    if (access(file, R_OK) < 0) {
        return -errno;
    }
    classifier->object = bpf_object__open_file(file, NULL);
    if (classifier->object == NULL) {
        return -errno;
    }
    struct bpf_map *targets = bpf_object__find_map_by_name(classifier->object, "targets");
    struct bpf_map *constants = bpf_object__find_map_by_name(classifier->object, ".rodata.terms");
    if (targets == NULL || constants == NULL ||
        bpf_map__set_max_entries(targets, terms->hosts) < 0) {
        return -EINVAL;
    }
    return bpf_map__set_initial_value(constants, terms, sizeof *terms);
}

// Either packets have departure times, or a tree of queues has classes.
static void choose_programs(const struct xco_classifier *classifier) {
    struct bpf_program *program;
    bpf_object__for_each_program(program, classifier->object) {
        bool paces = strcmp(bpf_program__name(program), "xco_pace") == 0;
        bpf_program__set_autoload(program, paces == classifier->paced);
    }
}

static struct bpf_link *attach(const struct xco_classifier *classifier, const char *name) {
    struct bpf_program *program = bpf_object__find_program_by_name(classifier->object, name);
    return program == NULL ? NULL : bpf_program__attach(program);
}

static void *shared(const struct xco_classifier *classifier, const char *name, size_t *bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *bytes = (*bytes + page - 1) / page * page;
    void *memory =
        mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map_of(classifier, name), 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// Maps the memory shared with the kernel; false if that fails.
static bool share_all(struct xco_classifier *classifier) {
    classifier->target_bytes = classifier->hosts * sizeof *classifier->targets;
    classifier->passage_bytes = XCO_QUEUES * sizeof *classifier->passages;
    classifier->pace_bytes = XCO_PACES * sizeof *classifier->paces;
    classifier->kind_bytes = sizeof *classifier->kinds;
    classifier->slot_bytes = (XCO_QUEUE_OUTSIDE + 1) * XCO_SLOTS * sizeof *classifier->slots;
    classifier->targets = shared(classifier, "targets", &classifier->target_bytes);
    classifier->passages = shared(classifier, "passages", &classifier->passage_bytes);
    classifier->paces = shared(classifier, "paces", &classifier->pace_bytes);
    classifier->kinds = shared(classifier, ".data.kinds", &classifier->kind_bytes);
    classifier->slots = shared(classifier, "slots", &classifier->slot_bytes);
    return classifier->targets != NULL && classifier->passages != NULL &&
           classifier->paces != NULL && classifier->kinds != NULL && classifier->slots != NULL;
}

// Attaches the programs that count at a tree's tracepoints; true without a tree.
static bool count_all(struct xco_classifier *classifier) {
    if (classifier->paced) {
        return true;
    }
    classifier->share = program_of(classifier, "xco_share");
    classifier->entered = attach(classifier, "xco_entered");
    classifier->left = attach(classifier, "xco_left");
    return classifier->entered != NULL && classifier->left != NULL;
}

static int attach_all(struct xco_classifier *classifier, void *context) {
    bool whole = share_all(classifier) && count_all(classifier);
    classifier->classify = program_of(classifier, classifier->paced ? "xco_pace" : "xco_classify");
    classifier->places = map_of(classifier, "places");
    classifier->root = map_of(classifier, "root");
    classifier->vms = map_of(classifier, "vms");
    classifier->notices = ring_buffer__new(map_of(classifier, "notices"), on_notice, context, NULL);
    return whole && classifier->notices != NULL ? 0 : errno == EPERM ? -EPERM : -EOPNOTSUPP;
}

int xco_classifier_open(struct xco_classifier *classifier, const char *file,
                        const struct xco_classify_terms *terms, xco_notice_taker taker,
                        void *context) {
    *classifier = (struct xco_classifier){
        .hosts = terms->hosts, .paced = terms->paced != 0, .horizon_ns = terms->horizon_ns};
    problem[0] = '\0';
    take_notice = taker;
    libbpf_set_print(note_problem);
    int error = open_object(classifier, file, terms);
    if (error == 0) {
        choose_programs(classifier);
        int refused = bpf_object__load(classifier->object);
        error = refused == 0        ? attach_all(classifier, context)
                : refused == -EPERM ? -EPERM
                                    : -EOPNOTSUPP;
    }
    if (error != 0) {
        xco_classifier_close(classifier);
    }
    return error;
}

static void unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

void xco_classifier_close(struct xco_classifier *classifier) {
    ring_buffer__free(classifier->notices);
    bpf_link__destroy(classifier->entered);
    bpf_link__destroy(classifier->left);
    unmap(classifier->targets, classifier->target_bytes);
    unmap(classifier->passages, classifier->passage_bytes);
    unmap(classifier->paces, classifier->pace_bytes);
    unmap(classifier->kinds, classifier->kind_bytes);
    unmap(classifier->slots, classifier->slot_bytes);
    bpf_object__close(classifier->object);
    *classifier = (struct xco_classifier){0};
}

int xco_classifier_begin(struct xco_classifier *classifier, unsigned interface) {
    struct stat namespace;
    if (stat("/proc/self/ns/net", &namespace) < 0) {
        return -errno;
    }
    const struct xco_root root = {.interface = interface, .namespace = (uint32_t)namespace.st_ino};
    return bpf_map_update_elem(classifier->root, &(uint32_t){0}, &root, BPF_ANY) < 0 ? -errno : 0;
}

int xco_classifier_place(struct xco_classifier *classifier, const struct xco_place *place,
                         uint16_t host) {
    uint32_t value = host;
    __atomic_fetch_or(classifier->kinds, XCO_KIND_BIT(place->kind, place->vlan), __ATOMIC_RELEASE);
    return bpf_map_update_elem(classifier->places, place, &value, BPF_ANY) < 0 ? -errno : 0;
}

int xco_classifier_displace(struct xco_classifier *classifier, const struct xco_place *place) {
    return bpf_map_delete_elem(classifier->places, place) < 0 ? -errno : 0;
}

void xco_classifier_give(struct xco_classifier *classifier, uint16_t host, unsigned gate) {
    if (host < classifier->hosts) {
        __atomic_store_n(&classifier->targets[host].gate, gate + 1, __ATOMIC_RELEASE);
    }
}

void xco_classifier_take(struct xco_classifier *classifier, uint16_t host) {
    if (host < classifier->hosts) {
        __atomic_store_n(&classifier->targets[host].gate, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&classifier->targets[host].wanted, 0, __ATOMIC_RELEASE);
    }
}

void xco_classifier_refuse(struct xco_classifier *classifier, uint16_t host, int64_t until_ns) {
    if (host < classifier->hosts) {
        __atomic_store_n(&classifier->targets[host].refuses_ns, (uint64_t)until_ns,
                         __ATOMIC_RELEASE);
    }
}

uint64_t xco_classifier_refused(const struct xco_classifier *classifier, uint16_t host) {
    return host < classifier->hosts
               ? __atomic_load_n(&classifier->targets[host].refused, __ATOMIC_RELAXED)
               : 0;
}

// Makes the next packet depart within the horizon, as the last waiting one does.
static void bound(struct xco_pace *pace, uint64_t latest_ns) {
    uint64_t next_ns = __atomic_load_n(&pace->next_ns, __ATOMIC_ACQUIRE);
    while (next_ns > latest_ns &&
           !__atomic_compare_exchange_n(&pace->next_ns, &next_ns, latest_ns, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
}

void xco_classifier_pace(struct xco_classifier *classifier, unsigned queue, uint64_t rate_bps,
                         int64_t now_ns) {
    struct xco_pace *pace = &classifier->paces[queue];
    __atomic_store_n(&pace->rate_bps, rate_bps, __ATOMIC_RELEASE);
    bound(pace, (uint64_t)now_ns + classifier->horizon_ns);
}

uint64_t xco_classifier_dropped(const struct xco_classifier *classifier) {
    uint64_t bytes = 0;
    for (unsigned queue = 0; classifier->paced && queue < XCO_PACES; queue++) {
        bytes += __atomic_load_n(&classifier->paces[queue].dropped_bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

// A packet with a departure time has entered; until that time it waits.
static struct xco_passage departures(const struct xco_pace *pace, uint64_t now_ns) {
    uint64_t next_ns = __atomic_load_n(&pace->next_ns, __ATOMIC_ACQUIRE);
    uint64_t sent = __atomic_load_n(&pace->sent_bytes, __ATOMIC_ACQUIRE);
    uint64_t ahead_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    uint64_t waits = ahead_ns * (pace->rate_bps / 1000) / 8000000;
    return (struct xco_passage){.entered = sent, .left = sent - (waits < sent ? waits : sent)};
}

struct xco_passage xco_classifier_passage(const struct xco_classifier *classifier, unsigned queue,
                                          int64_t now_ns) {
    if (classifier->paced) {
        return departures(&classifier->paces[queue], (uint64_t)now_ns);
    }
    const struct xco_passage *passage = &classifier->passages[queue];
    // read departures first: between the two reads something may enter and leave
    uint64_t left = __atomic_load_n(&passage->left, __ATOMIC_ACQUIRE);
    return (struct xco_passage){
        .entered = __atomic_load_n(&passage->entered, __ATOMIC_ACQUIRE),
        .left = left,
    };
}

int xco_classifier_list(struct xco_classifier *classifier, unsigned interface, unsigned slot) {
    return bpf_map_update_elem(classifier->vms, &interface, &slot, BPF_ANY) < 0 ? -errno : 0;
}

int xco_classifier_unlist(struct xco_classifier *classifier, unsigned interface) {
    return bpf_map_delete_elem(classifier->vms, &interface) < 0 ? -errno : 0;
}

const uint64_t *xco_classifier_slots(const struct xco_classifier *classifier, unsigned gate) {
    return &classifier->slots[gate * XCO_SLOTS];
}

static void reset_slots(struct xco_classifier *classifier, unsigned queue) {
    for (unsigned slot = 0; queue <= XCO_QUEUE_OUTSIDE && slot < XCO_SLOTS; slot++) {
        __atomic_store_n(&classifier->slots[queue * XCO_SLOTS + slot], 0, __ATOMIC_RELEASE);
    }
}

void xco_classifier_reset(struct xco_classifier *classifier, unsigned queue) {
    struct xco_passage *passage = &classifier->passages[queue];
    __atomic_store_n(&passage->left, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&passage->entered, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&passage->tell, 0, __ATOMIC_RELEASE);
    reset_slots(classifier, queue);
    struct xco_pace *pace = &classifier->paces[queue],
                    *first = &classifier->paces[XCO_QUEUE_NEWCOMERS];
    __atomic_store_n(&pace->sent_bytes, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pace->next_ns, __atomic_load_n(&first->next_ns, __ATOMIC_ACQUIRE),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&pace->rate_bps, __atomic_load_n(&first->rate_bps, __ATOMIC_ACQUIRE),
                     __ATOMIC_RELEASE);
}

void xco_classifier_arm(struct xco_classifier *classifier, unsigned queue) {
    __atomic_store_n(&classifier->passages[queue].tell, 1, __ATOMIC_RELEASE);
}

int xco_classifier_descriptor(const struct xco_classifier *classifier) {
    return ring_buffer__epoll_fd(classifier->notices);
}

void xco_classifier_notices(struct xco_classifier *classifier) {
    ring_buffer__consume(classifier->notices);
}
