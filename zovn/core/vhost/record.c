/* A file that is mapped: what is written there is kept when this process is killed. */
#include "vhost/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct file {
    struct zovn_record_of about;
    struct zovn_inflight inflight;
};

/* The first pair has the name that it had when there were no others. */
struct zovn_record_path zovn_record_path(const char *socket, uint32_t pair) {
    struct zovn_record_path path;
    if (pair)
        snprintf(path.text, sizeof path.text, "%s.held%u", socket, pair);
    else
        snprintf(path.text, sizeof path.text, "%s.held", socket);
    return path;
}

/* The room is taken now: a write to a page that finds none would end this process. */
static bool take_room(int file, size_t bytes) {
    if (ftruncate(file, (off_t)bytes) < 0)
        return false;
    errno = posix_fallocate(file, 0, (off_t)bytes);
    return errno == 0;
}

/* Return NULL with errno. */
static struct file *map(const char *socket, uint32_t pair, size_t bytes) {
    struct zovn_record_path path = zovn_record_path(socket, pair);
    int file = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (take_room(file, bytes))
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = errno;
    close(file);
    errno = error;
    return memory == MAP_FAILED ? NULL : memory;
}

/* Not if others gave chains back: QEMU may while no switch is there, and a guest may begin again. */
static bool fits(const struct zovn_inflight *inflight, const struct zovn_split_ring *ring) {
    return inflight->size == ring->size && inflight->last < ring->size &&
           zovn_inflight_stands_at(inflight, ZOVN_READ(ring->used->index));
}

struct zovn_inflight *zovn_record_open(struct zovn_record *record, const char *socket,
                                       uint32_t pair, const struct zovn_record_of *about,
                                       const struct zovn_split_ring *ring) {
    size_t bytes = sizeof(struct file) + ring->size * sizeof(struct zovn_inflight_entry);
    struct file *file = map(socket, pair, bytes);
    if (!file)
        return NULL;
    if (memcmp(&file->about, about, sizeof *about) != 0 || !fits(&file->inflight, ring)) {
        memset(file, 0, bytes);
        file->about = *about;
        file->inflight.size = (uint16_t)ring->size;
        file->inflight.used_index = ZOVN_READ(ring->used->index);
    }
    *record = (struct zovn_record){.memory = file, .bytes = bytes};
    return &file->inflight;
}

void zovn_record_close(struct zovn_record *record) {
    if (record->memory)
        munmap(record->memory, record->bytes);
    record->memory = NULL;
}

void zovn_record_remove(const char *socket, uint32_t pairs) {
    for (uint32_t i = 0; i < pairs; i++)
        unlink(zovn_record_path(socket, i).text);
}
