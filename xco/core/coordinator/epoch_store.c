// Persists the highest epoch in a thread of its own: a slow disk delays no gate.
#include "coordinator/epoch_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/config.h"
#include "common/log.h"

#define STACK_BYTES 65536 // all memory is locked
#define DAY_NS UINT64_C(86400000000000)

uint64_t xco_epoch_most(int64_t wall_ns) {
    return (uint64_t)wall_ns + DAY_NS;
}

uint64_t xco_epoch_read(const char *path, uint64_t most) {
    unsigned long long epoch = 0;
    FILE *file = path[0] == '\0' ? NULL : fopen(path, "re");
    if (file != NULL) {
        epoch = fscanf(file, "%llu", &epoch) == 1 ? epoch : 0;
        fclose(file);
    }
    if (epoch > most) {
        xco_say("%s: epoch %llu is too far ahead of this clock: ignored", path, epoch);
        return 0;
    }
    return epoch;
}

// Makes a file's new name durable: a rename changes the directory (fsync(2)).
static int sync_folder(const char *path) {
    char folder[XCO_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    snprintf(folder, sizeof folder, "%.*s", length, slash == NULL ? "." : path);
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) {
        return -errno;
    }
    int error = fsync(opened) < 0 ? -errno : 0;
    close(opened);
    return error;
}

static int write_epoch(const char *path, uint64_t epoch) {
    char beside[XCO_PATH_BYTES + 8], text[24];
    snprintf(beside, sizeof beside, "%s.new", path);
    int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)epoch);
    int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) {
        return -errno;
    }
    bool written = write(file, text, (size_t)length) == length && fsync(file) == 0;
    int error = written ? 0 : -errno;
    close(file);
    if (error == 0 && rename(beside, path) < 0) {
        error = -errno;
    }
    return error == 0 ? sync_folder(path) : error;
}

static int64_t wall_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Writes the wanted epoch at each request.
static void *keep(void *argument) {
    struct xco_epoch_store *store = argument;
    eventfd_t times;
    while (eventfd_read(store->asks, &times) == 0) {
        uint64_t epoch = __atomic_load_n(&store->wanted, __ATOMIC_ACQUIRE);
        int error = write_epoch(store->path, epoch);
        if (error != 0) {
            xco_say("%s: the epoch cannot be stored: %s", store->path, strerror(-error));
        }
        __atomic_store_n(&store->kept, epoch, __ATOMIC_RELEASE);
        eventfd_write(store->tells, 1);
    }
    return NULL;
}

int xco_epoch_store_start(struct xco_epoch_store *store, const char *path) {
    store->path = path;
    store->wanted = store->kept = xco_epoch_read(path, xco_epoch_most(wall_ns()));
    store->asks = eventfd(0, EFD_CLOEXEC);
    store->tells = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->asks < 0 || store->tells < 0) {
        return -errno;
    }
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    error = error == 0 ? pthread_attr_setstacksize(&attributes, STACK_BYTES) : error;
    error = error == 0 ? pthread_create(&thread, &attributes, keep, store) : error;
    return -error;
}

bool xco_epoch_store_has(struct xco_epoch_store *store, uint64_t epoch) {
    if (store->path[0] == '\0' || epoch <= __atomic_load_n(&store->kept, __ATOMIC_ACQUIRE)) {
        return true;
    }
    if (epoch > store->wanted) { // only this thread writes it
        __atomic_store_n(&store->wanted, epoch, __ATOMIC_RELEASE);
        eventfd_write(store->asks, 1);
    }
    return false;
}
