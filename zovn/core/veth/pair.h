/* A veth pair in the calling thread's network namespace, for the probe. */
#ifndef ZOVN_VETH_PAIR_H
#define ZOVN_VETH_PAIR_H

#include <stdint.h>

#define ZOVN_PAIR_HOST "zovn0"
#define ZOVN_PAIR_CONTAINER "veth0" /* the first name that the kernel gives */

/* Make both ends and set them up; the container's queue holds so many frames. Return 0 or a negative errno. */
int zovn_pair_make(uint32_t queue);

#endif
