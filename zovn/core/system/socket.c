/* Clears the paths of sockets, and sets who may open them. */
#include "system/socket.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool answers(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answered = connect(file, (const struct sockaddr *)&address, sizeof address) == 0;
    close(file);
    return answered;
}

/* What is in use, or is no socket, stays. */
const char *zovn_socket_clear(const char *path) {
    struct stat found;
    if (lstat(path, &found) < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISSOCK(found.st_mode))
        return "a file is there that is no socket";
    if (answers(path))
        return "another program listens there";
    return unlink(path) < 0 ? strerror(errno) : NULL;
}

uint32_t zovn_socket_mask(int64_t group) {
    return umask(group < 0 ? 0177 : 0117);
}

const char *zovn_socket_give(const char *path, int64_t group) {
    if (group >= 0 && chown(path, (uid_t)-1, (gid_t)group) < 0)
        return strerror(errno);
    return NULL;
}
