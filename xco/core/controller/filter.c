// A filter in the kernel: drops datagrams that cannot be a message to the controller.
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
#define REPORT_MOST FIXED(32 + 20 * XCO_ENTRIES_MAX)
#define PLACES_LEAST FIXED(40)
#define PLACES_MOST FIXED(40 + 22 * XCO_LOCATED_MAX)
#define PORT_LEAST FIXED(40)
#define PORT_MOST FIXED(40 + 64 * XCO_PORTS_MAX)

#define LOAD(size, at) BPF_STMT(BPF_LD | (size) | BPF_ABS, at)
#define LENGTH BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0)
#define IF(test, value, then, otherwise) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, then, otherwise)
#define RETURN(bytes) BPF_STMT(BPF_RET | BPF_K, bytes)

bool xco_filter_attach(int udp) {
    struct sock_filter code[] = {
        LOAD(BPF_W, UDP),                     //  0
        IF(BPF_JEQ, MAGIC, 0, 18),            //  1, else to 20
        LOAD(BPF_B, UDP + 5),                 //  2
        IF(BPF_JEQ, XCO_WIRE_VERSION, 0, 20), //  3, else to 24: to be counted
        LOAD(BPF_B, UDP + 4),                 //  4
        IF(BPF_JEQ, XCO_HELLO, 4, 0),         //  5, to 10
        IF(BPF_JEQ, XCO_LEAVE, 5, 0),         //  6, to 12
        IF(BPF_JEQ, XCO_REPORT, 6, 0),        //  7, to 14
        IF(BPF_JEQ, XCO_PLACES, 8, 0),        //  8, to 17
        IF(BPF_JEQ, XCO_PORT, 11, 10),        //  9, to 21, else to 20
        LENGTH,                               // 10
        IF(BPF_JEQ, HELLO_LENGTH, 12, 8),     // 11, to 24, else to 20
        LENGTH,                               // 12
        IF(BPF_JEQ, LEAVE_LENGTH, 10, 6),     // 13, to 24, else to 20
        LENGTH,                               // 14
        IF(BPF_JGE, REPORT_LEAST, 0, 4),      // 15, else to 20
        IF(BPF_JGT, REPORT_MOST, 3, 7),       // 16, to 20, else to 24
        LENGTH,                               // 17
        IF(BPF_JGE, PLACES_LEAST, 0, 1),      // 18, else to 20
        IF(BPF_JGT, PLACES_MOST, 0, 4),       // 19, else to 24
        RETURN(0),                            // 20
        LENGTH,                               // 21
        IF(BPF_JGE, PORT_LEAST, 0, 2),        // 22, else to 25
        IF(BPF_JGT, PORT_MOST, 1, 0),         // 23, to 25
        RETURN(UINT32_MAX),                   // 24
        RETURN(0),                            // 25
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return setsockopt(udp, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}
