/* The frames that port and kernel share (AF_XDP, copy mode): their memory and the rings that pass them. */
#include "veth/frames.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SMALL_CHUNK = 2048, LARGE_CHUNK = 4096, KERNEL_ROOM = 256 };
enum { SEND_BUFFER = 4 << 20 }; /* the kernel's copies of all frames fit */

static uint32_t load(const uint32_t *place) {
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *place, uint32_t value) {
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

static int set(int socket, int option, const void *value, socklen_t length) {
    return setsockopt(socket, SOL_XDP, option, value, length) ? -errno : 0;
}

static int set_size(int socket, int option, uint32_t size) {
    return set(socket, option, &size, sizeof size);
}

static int map(struct zovn_shared_ring *ring, int socket, const struct xdp_ring_offset *offsets,
               uint32_t entry_bytes, off_t page) {
    ring->bytes = offsets->desc + (size_t)ring->size * entry_bytes;
    uint8_t *memory =
        mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket, page);
    if (memory == MAP_FAILED)
        return -errno;
    ring->memory = memory;
    ring->producer = (uint32_t *)(memory + offsets->producer);
    ring->consumer = (uint32_t *)(memory + offsets->consumer);
    ring->entries = memory + offsets->desc;
    return 0;
}

static int map_rings(struct zovn_frames *frames) {
    struct xdp_mmap_offsets at;
    socklen_t length = sizeof at;
    if (getsockopt(frames->receive, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length))
        return -errno;
    int error = map(&frames->fill, frames->receive, &at.fr, sizeof(uint64_t),
                    (off_t)XDP_UMEM_PGOFF_FILL_RING);
    if (!error)
        error = map(&frames->completed, frames->receive, &at.cr, sizeof(uint64_t),
                    (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
    if (!error)
        error = map(&frames->received, frames->receive, &at.rx, sizeof(struct xdp_desc),
                    XDP_PGOFF_RX_RING);
    if (!error)
        error =
            map(&frames->sent, frames->send, &at.tx, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
    return error;
}

static int share_memory(struct zovn_frames *frames) {
    size_t bytes = (size_t)ZOVN_FRAMES * frames->chunk;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    frames->memory = memory;
    struct xdp_umem_reg umem = {
        .addr = (uintptr_t)memory, .len = bytes, .chunk_size = frames->chunk};
    return set(frames->receive, XDP_UMEM_REG, &umem, sizeof umem);
}

static int set_sizes(struct zovn_frames *frames) {
    frames->fill.size = frames->received.size = ZOVN_RECEIVED;
    frames->completed.size = frames->sent.size = ZOVN_SENT;
    int error = set_size(frames->receive, XDP_UMEM_FILL_RING, frames->fill.size);
    if (!error)
        error = set_size(frames->receive, XDP_UMEM_COMPLETION_RING, frames->completed.size);
    if (!error)
        error = set_size(frames->receive, XDP_RX_RING, frames->received.size);
    if (!error)
        error = set_size(frames->send, XDP_TX_RING, frames->sent.size);
    return error;
}

static int open_sockets(struct zovn_frames *frames) {
    int room = SEND_BUFFER;
    frames->receive = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (frames->receive < 0)
        return -errno;
    frames->send = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (frames->send < 0 ||
        setsockopt(frames->send, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room))
        return -errno;
    return 0;
}

static void begin(struct zovn_frames *frames) {
    for (uint32_t i = 0; i < ZOVN_RECEIVED; i++)
        zovn_frames_refill(frames, i);
    zovn_frames_show(frames);
    for (uint32_t i = 0; i < ZOVN_SENT; i++)
        frames->unused[frames->unused_count++] = (uint16_t)(ZOVN_HEADS + i);
}

int zovn_frames_open(struct zovn_frames *frames, uint32_t most) {
    *frames = (struct zovn_frames){.receive = -1, .send = -1};
    if (most > ZOVN_MOST_FRAME)
        return -EMSGSIZE;
    frames->chunk = most > SMALL_CHUNK - KERNEL_ROOM ? LARGE_CHUNK : SMALL_CHUNK;
    int error = open_sockets(frames);
    if (!error)
        error = share_memory(frames);
    if (!error)
        error = set_sizes(frames);
    if (!error)
        error = map_rings(frames);
    if (error)
        zovn_frames_close(frames);
    else
        begin(frames);
    return error;
}

int zovn_frames_bind(const struct zovn_frames *frames, uint32_t interface) {
    struct sockaddr_xdp place = {
        .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY, .sxdp_ifindex = interface};
    if (bind(frames->receive, (struct sockaddr *)&place, sizeof place))
        return -errno;
    place.sxdp_flags = XDP_SHARED_UMEM;
    place.sxdp_shared_umem_fd = (uint32_t)frames->receive;
    return bind(frames->send, (struct sockaddr *)&place, sizeof place) ? -errno : 0;
}

static void unmap(struct zovn_shared_ring *ring) {
    if (ring->memory)
        munmap(ring->memory, ring->bytes);
}

void zovn_frames_close(struct zovn_frames *frames) {
    unmap(&frames->fill);
    unmap(&frames->received);
    unmap(&frames->sent);
    unmap(&frames->completed);
    if (frames->send >= 0)
        close(frames->send);
    if (frames->receive >= 0)
        close(frames->receive);
    if (frames->memory)
        munmap(frames->memory, (size_t)ZOVN_FRAMES * frames->chunk);
    *frames = (struct zovn_frames){.receive = -1, .send = -1};
}

bool zovn_frames_take(struct zovn_frames *frames, struct xdp_desc *taken) {
    struct zovn_shared_ring *ring = &frames->received;
    if (load(ring->producer) == ring->at)
        return false;
    *taken = ((struct xdp_desc *)ring->entries)[ring->at++ % ring->size];
    store(ring->consumer, ring->at);
    frames->given--;
    return true;
}

uint32_t zovn_frames_room(const struct zovn_frames *frames) {
    return frames->given - (load(frames->received.producer) - frames->received.at);
}

void zovn_frames_refill(struct zovn_frames *frames, uint32_t frame) {
    struct zovn_shared_ring *ring = &frames->fill;
    ((uint64_t *)ring->entries)[ring->at++ % ring->size] = (uint64_t)frame * frames->chunk;
}

void zovn_frames_show(struct zovn_frames *frames) {
    struct zovn_shared_ring *ring = &frames->fill;
    frames->given += ring->at - *ring->producer;
    store(ring->producer, ring->at);
}

void zovn_frames_queue(struct zovn_frames *frames, uint32_t length) {
    struct zovn_shared_ring *ring = &frames->sent;
    uint64_t frame = frames->unused[--frames->unused_count];
    ((struct xdp_desc *)ring->entries)[ring->at++ % ring->size] =
        (struct xdp_desc){.addr = frame * frames->chunk, .len = length};
}

static void reap(struct zovn_frames *frames) {
    struct zovn_shared_ring *ring = &frames->completed;
    uint32_t end = load(ring->producer);
    while (ring->at != end) {
        uint64_t address = ((uint64_t *)ring->entries)[ring->at++ % ring->size];
        frames->unused[frames->unused_count++] = (uint16_t)(address / frames->chunk);
    }
    store(ring->consumer, end);
}

/* A call sends some 32 frames. One that sends none met a full ring: the frames stay. */
int zovn_frames_send(struct zovn_frames *frames) {
    struct zovn_shared_ring *ring = &frames->sent;
    store(ring->producer, ring->at);
    uint32_t before = load(ring->consumer);
    while (before != ring->at) {
        if (sendto(frames->send, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno == ENXIO)
            return -ENXIO;
        if (load(ring->consumer) == before)
            break;
        before = load(ring->consumer);
    }
    reap(frames);
    return 0;
}

uint32_t zovn_frames_unsent(const struct zovn_frames *frames) {
    return frames->sent.at - load(frames->sent.consumer);
}

uint64_t zovn_frames_lost(const struct zovn_frames *frames) {
    struct xdp_statistics counted;
    socklen_t length = sizeof counted;
    if (getsockopt(frames->receive, SOL_XDP, XDP_STATISTICS, &counted, &length))
        return 0;
    return counted.rx_dropped + counted.rx_ring_full;
}
