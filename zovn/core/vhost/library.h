/* Starts and ends DPDK, whose librte_vhost speaks the vhost-user protocol. */
#ifndef ZOVN_VHOST_LIBRARY_H
#define ZOVN_VHOST_LIBRARY_H

#include <stdbool.h>

/* Start it without huge pages, devices and files. Return false; it has logged the problem. */
bool zovn_vhost_library_start(void);

void zovn_vhost_library_end(void);

#endif
