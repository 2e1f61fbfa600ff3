/* Looks through the files of this process for connections, and sets their timeouts. */
#include "vhost/waits.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

/* A front end that sends a message in one piece is never waited for, and one that reads its answers never
 * has so many left that there is no room for another. */
enum { REST_USEC = 100000, ROOM_USEC = 10000 };

/* The end that was accepted has the path of the socket that listened. */
static bool is_connection(int file, const char *path) {
    struct sockaddr_un own = {0};
    socklen_t size = sizeof own, bytes = sizeof(int);
    int listens = 1;
    return getsockname(file, (struct sockaddr *)&own, &size) == 0 && own.sun_family == AF_UNIX &&
           strncmp(own.sun_path, path, sizeof own.sun_path) == 0 &&
           getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && !listens;
}

static bool bound(int file) {
    const struct timeval rest = {.tv_usec = REST_USEC}, room = {.tv_usec = ROOM_USEC};
    return setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &rest, sizeof rest) == 0 &&
           setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &room, sizeof room) == 0;
}

bool zovn_waits_bound(const char *path) {
    DIR *files = opendir("/proc/self/fd");
    bool found = false, all = true;
    if (!files)
        return false;
    for (const struct dirent *entry; (entry = readdir(files));) {
        int file = atoi(entry->d_name); /* 0 for . and .., where no connection is */
        if (is_connection(file, path)) {
            found = true;
            all &= bound(file);
        }
    }
    closedir(files);
    return found && all;
}
