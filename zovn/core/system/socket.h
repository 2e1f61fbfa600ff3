/* Sockets in the file system. */
#ifndef ZOVN_SYSTEM_SOCKET_H
#define ZOVN_SYSTEM_SOCKET_H

#include <stdint.h>

/* Remove a socket that a killed process left; return NULL, or why the path cannot be used. */
const char *zovn_socket_clear(const char *path);

/* Give a socket that was made with `zovn_socket_mask` to a group; -1: to none. Return as above. */
const char *zovn_socket_give(const char *path, int64_t group);

/* Set the umask for a socket of such a group; return the one before. */
uint32_t zovn_socket_mask(int64_t group);

#endif
