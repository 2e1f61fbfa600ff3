// Publishes counters in a mapped file under a seqlock; see common/stats.h for the layout.
#include "common/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t file_bytes(const struct xco_stats_layout *layout) {
    return sizeof(struct xco_stats_header) +
           (layout->fields + layout->columns) * XCO_STATS_NAME_BYTES +
           (layout->fields + layout->rows * layout->columns) * sizeof(uint64_t);
}

// Maps a new file of the given size; NULL with errno.
static void *map_new(const char *path, size_t bytes) {
    (void)unlink(path);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) {
        return NULL;
    }
    // reserve the space: a first write to a page on a full file system kills the writer
    int problem = posix_fallocate(file, 0, (off_t)bytes);
    void *mapping = MAP_FAILED;
    if (problem == 0) {
        mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        problem = errno;
    }
    close(file);
    if (mapping == MAP_FAILED) {
        (void)unlink(path);
        errno = problem;
        return NULL;
    }
    return mapping;
}

static char *write_names(char *at, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(at, XCO_STATS_NAME_BYTES, "%s", names[i]);
        at += XCO_STATS_NAME_BYTES;
    }
    return at;
}

static void describe(struct xco_stats *stats, const struct xco_stats_layout *layout) {
    struct xco_stats_header *header = stats->header;
    header->fields = (uint32_t)layout->fields;
    header->columns = (uint32_t)layout->columns;
    header->rows = (uint32_t)layout->rows;
    header->pid = (uint32_t)getpid();
    char *at = write_names((char *)(header + 1), layout->field_names, layout->fields);
    at = write_names(at, layout->column_names, layout->columns);
    stats->values = (uint64_t *)(void *)at; // aligned: header and names are multiples of 8
    stats->table = stats->values + layout->fields;
    stats->columns = layout->columns;
    memcpy(header->magic, XCO_STATS_MAGIC, sizeof header->magic);
}

int xco_stats_open(struct xco_stats *stats, const char *path,
                   const struct xco_stats_layout *layout) {
    char beside[PATH_MAX];
    const int length = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof beside) {
        errno = ENAMETOOLONG;
        return -1;
    }
    stats->bytes = file_bytes(layout);
    stats->header = map_new(beside, stats->bytes);
    if (stats->header == NULL) {
        return -1;
    }
    describe(stats, layout);
    if (rename(beside, path) != 0) {
        const int problem = errno;
        (void)unlink(beside);
        xco_stats_close(stats);
        errno = problem;
        return -1;
    }
    return 0;
}

static _Atomic uint64_t *lock_of(struct xco_stats *stats) {
    return (_Atomic uint64_t *)&stats->header->sequence;
}

void xco_stats_begin(struct xco_stats *stats) {
    const uint64_t even = atomic_load_explicit(lock_of(stats), memory_order_relaxed);
    atomic_store_explicit(lock_of(stats), even + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

void xco_stats_end(struct xco_stats *stats, uint64_t now_ns) {
    stats->header->updated_ns = now_ns;
    const uint64_t odd = atomic_load_explicit(lock_of(stats), memory_order_relaxed);
    atomic_store_explicit(lock_of(stats), odd + 1, memory_order_release);
}

uint64_t *xco_stats_row(struct xco_stats *stats, size_t index) {
    return stats->table + index * stats->columns;
}

void xco_stats_close(struct xco_stats *stats) {
    if (stats->header != NULL) {
        (void)munmap(stats->header, stats->bytes);
    }
    *stats = (struct xco_stats){0};
}
