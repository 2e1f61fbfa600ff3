// A filter in the kernel: drops datagrams that cannot be a host's message.
//
// Classic BPF sees a datagram from its UDP header on (8 bytes). A load beyond the end drops it.
#include "controller/filter.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include "common/message.h"

#define UDP 8u
#define MAGIC 0x58434f31u // "XCO1"
#define FIXED(body) (UDP + XCO_HEADER_BYTES + (body) + XCO_AUTH_BYTES)
#define HELLO_LENGTH FIXED(XCO_DIGEST_BYTES)
#define LEAVE_LENGTH FIXED(0)
#define REPORT_LEAST FIXED(32)
#define REPORT_MOST FIXED(32 + 12 * XCO_ENTRIES_MAX)
#define PLACES_LEAST FIXED(40)
#define PLACES_MOST FIXED(40 + 22 * XCO_LOCATED_MAX)

#define LOAD(size, at) BPF_STMT(BPF_LD | (size) | BPF_ABS, at)
#define LENGTH BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0)
#define IF(test, value, then, otherwise) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, then, otherwise)
#define RETURN(bytes) BPF_STMT(BPF_RET | BPF_K, bytes)

bool xco_filter_attach(int udp) {
    struct sock_filter code[] = {
        LOAD(BPF_W, UDP),                      //  0
        IF(BPF_JEQ, MAGIC, 0, 14),             //  1, else to 16
        LOAD(BPF_B, UDP + 5),                  //  2
        IF(BPF_JEQ, XCO_WIRE_VERSION, 0, 12),  //  3, else to 16
        LOAD(BPF_B, UDP + 4),                  //  4
        IF(BPF_JEQ, XCO_HELLO, 3, 0),          //  5, to 9
        IF(BPF_JEQ, XCO_LEAVE, 4, 0),          //  6, to 11
        IF(BPF_JEQ, XCO_REPORT, 5, 0),         //  7, to 13
        IF(BPF_JEQ, XCO_PLACES, 8, 7),         //  8, to 17, else to 16
        LENGTH,                                //  9
        IF(BPF_JEQ, HELLO_LENGTH, 9, 5),       // 10, to 20, else to 16
        LENGTH,                                // 11
        IF(BPF_JEQ, LEAVE_LENGTH, 7, 3),       // 12, to 20, else to 16
        LENGTH,                                // 13
        IF(BPF_JGE, REPORT_LEAST, 0, 1),       // 14, else to 16
        IF(BPF_JGT, REPORT_MOST, 0, 4),        // 15, else to 20
        RETURN(0),                             // 16
        LENGTH,                                // 17
        IF(BPF_JGE, PLACES_LEAST, 0, 2),       // 18, else to 21
        IF(BPF_JGT, PLACES_MOST, 1, 0),        // 19, to 21
        RETURN(UINT32_MAX),                    // 20
        RETURN(0),                             // 21
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return setsockopt(udp, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}
