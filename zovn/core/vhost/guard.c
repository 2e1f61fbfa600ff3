/* The handler of SIGBUS, and the table of what it guards. */
#include "vhost/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "forward/options.h"

enum { EACH = 80 }; /* ranges of a port: 64 regions, the records of its rings, and a log */

struct range {
    uintptr_t begin, end;
    bool *lost;
};

/* The lock spins, since a handler may not wait otherwise. Who has it touches no guarded memory. */
static struct {
    atomic_flag lock;
    uint32_t count;
    struct range ranges[ZOVN_MOST_PORTS * EACH];
} guarded = {.lock = ATOMIC_FLAG_INIT};

static _Thread_local bool *this_threads;

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&guarded.lock, memory_order_acquire))
        ;
}

static void unlock(void) {
    atomic_flag_clear_explicit(&guarded.lock, memory_order_release);
}

/* Once more does no harm: two threads may meet the end of a file at the same time. */
static bool replace(uintptr_t begin, uint64_t bytes, bool *lost) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    __atomic_store_n(lost, true, __ATOMIC_RELAXED);
    return mmap((void *)begin, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
}

/* A page of whichever size the mapping has. */
static bool replace_page(uintptr_t address, bool *lost) {
    static const uint64_t SIZES[] = {UINT64_C(1) << 12, UINT64_C(1) << 21, UINT64_C(1) << 30};
    for (uint32_t i = 0; lost && i < sizeof SIZES / sizeof SIZES[0]; i++)
        if (replace(address & ~(SIZES[i] - 1), SIZES[i], lost))
            return true;
    return false;
}

/* A range may be a part of a huge page, which the kernel replaces as a whole, or not at all. */
static bool replace_range(uintptr_t address) {
    for (uint32_t i = 0; i < guarded.count; i++) {
        const struct range *range = &guarded.ranges[i];
        if (address >= range->begin && address < range->end)
            return replace(range->begin, range->end - range->begin, range->lost) ||
                   replace_page(address, range->lost);
    }
    return false;
}

/* The access is made again after this: it goes on, or ends the process. A signal that another process
 * sent has no access: it is sent again. */
static void handle(int number, siginfo_t *information, void *context) {
    (void)context;
    int error = errno;
    bool access = information->si_code > 0;
    lock();
    bool replaced = access && (replace_range((uintptr_t)information->si_addr) ||
                               replace_page((uintptr_t)information->si_addr, this_threads));
    unlock();
    errno = error;
    if (replaced)
        return;
    signal(number, SIG_DFL);
    if (!access)
        raise(number);
}

bool zovn_guard_install(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    return sigaction(SIGBUS, &action, NULL) == 0;
}

static bool is_known(const struct range *range) {
    for (uint32_t i = 0; i < guarded.count; i++)
        if (guarded.ranges[i].begin == range->begin && guarded.ranges[i].end == range->end &&
            guarded.ranges[i].lost == range->lost)
            return true;
    return false;
}

bool zovn_guard_add(const void *begin, uint64_t bytes, bool *lost) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)begin;
    const struct range range = {from & ~(page - 1), (from + bytes + page - 1) & ~(page - 1), lost};
    lock();
    bool known = is_known(&range);
    bool fits = known || guarded.count < sizeof guarded.ranges / sizeof guarded.ranges[0];
    if (fits && !known)
        guarded.ranges[guarded.count++] = range;
    unlock();
    return fits;
}

void zovn_guard_drop(const bool *lost) {
    lock();
    for (uint32_t i = 0; i < guarded.count;)
        if (guarded.ranges[i].lost == lost)
            guarded.ranges[i] = guarded.ranges[--guarded.count];
        else
            i++;
    unlock();
}

void zovn_guard_thread(bool *lost) {
    this_threads = lost;
}
