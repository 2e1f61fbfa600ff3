// A filter in the kernel: what cannot be a message of a host never reaches the controller.
//
// Classic BPF sees a datagram from its UDP header on (8 bytes). A load beyond the end drops.
#include "controller_filter.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include "wire.h"

#define UDP 8u
#define MAGIC 0x58434f31u // "XCO1"
#define FIXED(body) (UDP + XCO_HEADER_BYTES + (body) + XCO_AUTH_BYTES)
#define HELLO_LENGTH FIXED(XCO_DIGEST_BYTES)
#define LEAVE_LENGTH FIXED(0)
#define REPORT_LEAST FIXED(32)
#define REPORT_MOST FIXED(32 + 12 * XCO_ENTRIES_MAX)

#define LOAD(size, at) BPF_STMT(BPF_LD | (size) | BPF_ABS, at)
#define LENGTH BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0)
#define IF(test, value, then, otherwise) \
    BPF_JUMP(BPF_JMP | (test) | BPF_K, value, then, otherwise)
#define RETURN(bytes) BPF_STMT(BPF_RET | BPF_K, bytes)

bool xco_filter_attach(int udp) {
    struct sock_filter code[] = {
        LOAD(BPF_W, UDP),                  //  0
        IF(BPF_JEQ, MAGIC, 0, 12),         //  1, else to 14
        LOAD(BPF_B, UDP + 5),              //  2
        IF(BPF_JEQ, XCO_WIRE_VERSION, 0, 10), // 3
        LOAD(BPF_B, UDP + 4),              //  4
        IF(BPF_JEQ, XCO_HELLO, 2, 0),      //  5, to 8
        IF(BPF_JEQ, XCO_LEAVE, 3, 0),      //  6, to 10
        IF(BPF_JEQ, XCO_REPORT, 4, 6),     //  7, to 12
        LENGTH,                            //  8
        IF(BPF_JEQ, HELLO_LENGTH, 5, 4),   //  9
        LENGTH,                            // 10
        IF(BPF_JEQ, LEAVE_LENGTH, 3, 2),   // 11
        LENGTH,                            // 12
        IF(BPF_JGE, REPORT_LEAST, 2, 0),   // 13, to 16
        RETURN(0),                         // 14
        RETURN(UINT32_MAX),                // 15
        IF(BPF_JGT, REPORT_MOST, 0, 1),    // 16
        RETURN(0),                         // 17
        RETURN(UINT32_MAX),                // 18
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return setsockopt(udp, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}
