/* A program for the kernel's classic BPF. */
#include "wire/filter.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/vxlan.h"

enum { TYPE_AT = 12, IPV4_AT = 14, TAG_BYTES = 4, MAC_CONTROL = 0x8808 };
enum { FRAGMENT_AT = 6, PROTOCOL_AT = 9, PORT_AT = 2, FRAGMENT = 0x1fff };

#define LOAD(size, from, at) BPF_STMT(BPF_LD | (size) | (from), at)
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define IF(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skip, 0)
#define IF_ANY(bits, skip) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, skip, 0)

/* X has the bytes of a tag in the frame: the kernel takes one out, but may leave it. Frames of other VLANs
 * pass, and are refused where they are read. The last numbers say how many instructions are skipped. A
 * load behind the end drops the frame. */
static struct sock_filter PROGRAM[] = {
    BPF_STMT(BPF_LDX | BPF_IMM, 0),
    LOAD(BPF_H, BPF_ABS, TYPE_AT),
    UNLESS(ETH_P_8021Q, 2),
    BPF_STMT(BPF_LDX | BPF_IMM, TAG_BYTES),
    LOAD(BPF_H, BPF_ABS, TYPE_AT + TAG_BYTES),
    IF(ETH_P_ARP, 13),
    IF(MAC_CONTROL, 12),
    UNLESS(ETH_P_IP, 12),
    LOAD(BPF_B, BPF_IND, IPV4_AT + PROTOCOL_AT),
    UNLESS(IPPROTO_UDP, 10),
    LOAD(BPF_H, BPF_IND, IPV4_AT + FRAGMENT_AT),
    IF_ANY(FRAGMENT, 8),
    LOAD(BPF_B, BPF_IND, IPV4_AT),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 15),
    BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
    BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
    BPF_STMT(BPF_MISC | BPF_TAX, 0),
    LOAD(BPF_H, BPF_IND, IPV4_AT + PORT_AT),
    UNLESS(ZOVN_VXLAN_PORT, 1),
    BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    BPF_STMT(BPF_RET | BPF_K, 0),
};

bool zovn_filter_attach(int file) {
    const struct sock_fprog program = {sizeof PROGRAM / sizeof PROGRAM[0], PROGRAM};
    return setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}
