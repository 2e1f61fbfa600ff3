// Drops what a program does not need after its start.
#ifndef XCO_COMMON_PRIVILEGES_H
#define XCO_COMMON_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

#define XCO_KEEP(capability) (UINT64_C(1) << (capability))

// Keeps only the capabilities (linux/capability.h) of a mask. Forbids running programs, tracing
// processes, mounting, and loading anything into the kernel. It holds for the calling thread and
// those that it starts later: call it before starting any other. False with errno.
//
// mlockall(MCL_FUTURE) counts later memory against RLIMIT_MEMLOCK without CAP_IPC_LOCK.
bool xco_privileges_drop(uint64_t keep);

#endif
