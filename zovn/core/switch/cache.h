/* Where threads that run on several CPUs must not write next to what others read. */
#ifndef ZOVN_SWITCH_CACHE_H
#define ZOVN_SWITCH_CACHE_H

enum { ZOVN_LINE = 64 }; /* bytes of a cache's line */

#endif
