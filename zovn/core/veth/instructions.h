/* Words for the instructions of a BPF program (linux/bpf.h), of which the names say what they do. */
#ifndef ZOVN_VETH_INSTRUCTIONS_H
#define ZOVN_VETH_INSTRUCTIONS_H

#include <stddef.h>

#include <linux/bpf.h>

enum { R0, R1, R2, R3, R4, R5, R6, R7 };

#define CODE(...) ((struct bpf_insn){__VA_ARGS__})
#define MOVE(to, from) CODE(.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to, .src_reg = from)
#define SET(to, number) CODE(.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to, .imm = number)
#define ADD(to, number) CODE(.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = to, .imm = number)
#define SUBTRACT(to, from) CODE(.code = BPF_ALU64 | BPF_SUB | BPF_X, .dst_reg = to, .src_reg = from)
#define NETWORK_ORDER_16(of) CODE(.code = BPF_ALU | BPF_END | BPF_TO_BE, .dst_reg = of, .imm = 16)
#define LOAD(size, to, from, at) \
    CODE(.code = BPF_LDX | BPF_MEM | size, .dst_reg = to, .src_reg = from, .off = at)
#define STORE(size, to, from, at) \
    CODE(.code = BPF_STX | BPF_MEM | size, .dst_reg = to, .src_reg = from, .off = at)
#define STORE_NUMBER(size, to, at, number) \
    CODE(.code = BPF_ST | BPF_MEM | size, .dst_reg = to, .off = at, .imm = number)
#define JUMP_IF(how, is, number, over) \
    CODE(.code = BPF_JMP | how | BPF_K, .dst_reg = is, .off = over, .imm = number)
#define JUMP_IF_MORE(is, than, over) \
    CODE(.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = is, .src_reg = than, .off = over)
#define CALL(helper) CODE(.code = BPF_JMP | BPF_CALL, .imm = helper)
#define EXIT() CODE(.code = BPF_JMP | BPF_EXIT)

/* Two instructions each. */
#define LOAD_64(to, kind, file) \
    CODE(.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = to, .src_reg = kind, .imm = file), CODE(0)
#define LOAD_MAP(to, map) LOAD_64(to, BPF_PSEUDO_MAP_FD, map)
#define LOAD_VALUE(to, map) LOAD_64(to, BPF_PSEUDO_MAP_VALUE, map)

#endif
