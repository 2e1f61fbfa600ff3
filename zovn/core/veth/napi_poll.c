/* Runs a NAPI once, by its identifier, while an empty io_uring waits for an event that never comes. */
#include "veth/napi_poll.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/io_uring.h>
#include <linux/time_types.h>

/* Of linux/io_uring.h since Linux 6.13; headers may be older. */
enum { REGISTER_NAPI = 27, TRACKING = 0, STATIC_ADD = 1, TRACKING_STATIC = 1 };
struct napi_settings {
    uint32_t busy_poll_us;
    uint8_t prefer_busy_poll;
    uint8_t operation;
    uint8_t unused[2];
    uint32_t parameter;
    uint32_t reserved;
};

enum { WAIT_NS = 1000000, SETTLE_NS = 5000000 };

static int set(int ring, uint8_t operation, uint32_t parameter) {
    struct napi_settings settings = {
        .busy_poll_us = 1, .operation = operation, .parameter = parameter};
    return syscall(SYS_io_uring_register, ring, REGISTER_NAPI, &settings, 1) ? -errno : 0;
}

static void wait_for_nothing(int ring) {
    struct __kernel_timespec briefly = {.tv_nsec = WAIT_NS};
    struct io_uring_getevents_arg until = {.sigmask_sz = _NSIG / 8, .ts = (uintptr_t)&briefly};
    syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &until,
            sizeof until);
}

int zovn_napi_poll(uint32_t napi) {
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &parameters);
    if (ring < 0)
        return -errno;
    int error = set(ring, TRACKING, TRACKING_STATIC);
    if (!error)
        error = set(ring, STATIC_ADD, napi);
    if (!error)
        wait_for_nothing(ring);
    close(ring);
    return error;
}

void zovn_napi_drain(uint32_t napi) {
    zovn_napi_poll(napi);
    nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
}
