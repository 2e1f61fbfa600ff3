/* The XDP program at the host's end: it redirects what the container sends to the port's socket. */
#include "veth/program.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/if_link.h>

#include "veth/instructions.h"

enum { STORE_BYTES = 190 }; /* bpf_xdp_store_bytes, of Linux 5.18; headers may be older */
enum { LOADS = 100 };

/* What program and port share. */
struct zovn_program_state {
    uint32_t first_sent;
    uint8_t headers[ZOVN_LEARN_HEADERS];
};

/* A broadcast from 0.0.0.0, which no filter of source addresses refuses, to the port's UDP socket.
 * The program adds lengths and the checksum. */
static const uint8_t HEADERS[ZOVN_LEARN_HEADERS] = {0xff,
                                                    0xff,
                                                    0xff,
                                                    0xff,
                                                    0xff,
                                                    0xff,
                                                    0x02,
                                                    'z',
                                                    'v',
                                                    'e',
                                                    't',
                                                    'h',
                                                    0x08,
                                                    0x00, /* Ethernet */
                                                    0x45,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    64,
                                                    17,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    255,
                                                    255,
                                                    255,
                                                    255, /* IPv4 */
                                                    ZOVN_LEARN_PORT >> 8,
                                                    ZOVN_LEARN_PORT & 0xff,
                                                    ZOVN_LEARN_PORT >> 8,
                                                    ZOVN_LEARN_PORT & 0xff,
                                                    0,
                                                    0,
                                                    0,
                                                    0};

/* Of these headers, without the length: 0x4500 + 0x4011 (the addresses' sum is 0 to a checksum). */
enum { CHECKSUM = 0xffff - 0x8511 };

static int call(int command, union bpf_attr *attributes) {
    int result = (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
    return result < 0 ? -errno : result;
}

static int make_map(enum bpf_map_type type, uint32_t value_bytes, uint32_t flags) {
    union bpf_attr attributes = {.map_type = type,
                                 .key_size = sizeof(uint32_t),
                                 .value_size = value_bytes,
                                 .max_entries = 1,
                                 .map_flags = flags};
    return call(BPF_MAP_CREATE, &attributes);
}

/* The verifier gives up when the thread has work to do on its way out of the kernel, such as the
 * end of the io_uring that woke the port before. */
static int load(union bpf_attr *attributes) {
    int result = -EAGAIN;
    for (int i = 0; i < LOADS && result == -EAGAIN; i++)
        result = call(BPF_PROG_LOAD, attributes);
    return result;
}

static int make_code(int sockets, int state) {
    const struct bpf_insn code[] = {
        MOVE(R6, R1), /* the context */
        LOAD_VALUE(R7, state),
        LOAD(BPF_W, R1, R7, offsetof(struct zovn_program_state, first_sent)),
        JUMP_IF(BPF_JNE, R1, 0, 30), /* to `redirect` */
        /* put the headers before the frame */
        MOVE(R1, R6),
        SET(R2, -ZOVN_LEARN_HEADERS),
        CALL(BPF_FUNC_xdp_adjust_head),
        JUMP_IF(BPF_JNE, R0, 0, 26), /* to `redirect` */
        MOVE(R1, R6),
        SET(R2, 0),
        MOVE(R3, R7),
        ADD(R3, offsetof(struct zovn_program_state, headers)),
        SET(R4, ZOVN_LEARN_HEADERS),
        CALL(STORE_BYTES),
        /* R2 is the first byte, R3 the length from IPv4 on */
        LOAD(BPF_W, R2, R6, offsetof(struct xdp_md, data)),
        LOAD(BPF_W, R3, R6, offsetof(struct xdp_md, data_end)),
        MOVE(R4, R2),
        ADD(R4, ZOVN_LEARN_HEADERS),
        JUMP_IF_MORE(R4, R3, 15), /* never; but the verifier does not know */
        SUBTRACT(R3, R2),
        ADD(R3, -14),
        MOVE(R4, R3),
        NETWORK_ORDER_16(R4),
        STORE(BPF_H, R2, R4, 16),
        SET(R4, CHECKSUM),
        SUBTRACT(R4, R3),
        NETWORK_ORDER_16(R4),
        STORE(BPF_H, R2, R4, 24),
        ADD(R3, -20), /* from UDP on */
        NETWORK_ORDER_16(R3),
        STORE(BPF_H, R2, R3, 38),
        STORE_NUMBER(BPF_W, R7, offsetof(struct zovn_program_state, first_sent), 1),
        SET(R0, XDP_PASS),
        EXIT(),
        /* redirect: */
        LOAD_MAP(R1, sockets),
        SET(R2, 0),
        SET(R3, XDP_DROP),
        CALL(BPF_FUNC_redirect_map),
        EXIT(),
    };
    union bpf_attr attributes = {.prog_type = BPF_PROG_TYPE_XDP,
                                 .insns = (uintptr_t)code,
                                 .insn_cnt = sizeof code / sizeof *code,
                                 .license = (uintptr_t)"GPL",
                                 .prog_name = "zovn_veth",
                                 .expected_attach_type = BPF_XDP};
    return load(&attributes);
}

static int share(struct zovn_program *program) {
    void *shared =
        mmap(NULL, sizeof *program->shared, PROT_READ | PROT_WRITE, MAP_SHARED, program->state, 0);
    if (shared == MAP_FAILED)
        return -errno;
    program->shared = shared;
    memcpy(program->shared->headers, HEADERS, sizeof HEADERS);
    return 0;
}

void zovn_program_init(struct zovn_program *program) {
    *program = (struct zovn_program){.code = -1, .sockets = -1, .state = -1, .link = -1};
}

int zovn_program_load(struct zovn_program *program) {
    zovn_program_init(program);
    program->sockets = make_map(BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), 0);
    program->state = make_map(BPF_MAP_TYPE_ARRAY, sizeof *program->shared, BPF_F_MMAPABLE);
    int error = program->sockets < 0 ? program->sockets : program->state < 0 ? program->state : 0;
    if (!error)
        error = share(program);
    if (!error)
        program->code = make_code(program->sockets, program->state);
    error = error ? error : program->code < 0 ? program->code : 0;
    if (error)
        zovn_program_close(program);
    return error;
}

int zovn_program_redirect(const struct zovn_program *program, int socket) {
    uint32_t queue = 0;
    union bpf_attr attributes = {.map_fd = (uint32_t)program->sockets,
                                 .key = (uintptr_t)&queue,
                                 .value = (uintptr_t)&socket};
    return call(BPF_MAP_UPDATE_ELEM, &attributes);
}

int zovn_program_attach(struct zovn_program *program, uint32_t interface) {
    union bpf_attr attributes = {.link_create = {.prog_fd = (uint32_t)program->code,
                                                 .target_ifindex = interface,
                                                 .attach_type = BPF_XDP,
                                                 .flags = XDP_FLAGS_DRV_MODE}};
    program->link = call(BPF_LINK_CREATE, &attributes);
    return program->link < 0 ? program->link : 0;
}

void zovn_program_expect(const struct zovn_program *program) {
    __atomic_store_n(&program->shared->first_sent, 0, __ATOMIC_RELEASE);
}

bool zovn_program_has_first(const struct zovn_program *program) {
    return __atomic_load_n(&program->shared->first_sent, __ATOMIC_ACQUIRE);
}

void zovn_program_close(struct zovn_program *program) {
    int opened[] = {program->link, program->code, program->sockets, program->state};
    for (uint32_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
    if (program->shared)
        munmap(program->shared, sizeof *program->shared);
    zovn_program_init(program);
}
