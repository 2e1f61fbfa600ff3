/* Begin to load what will be written soon. */
#ifndef ZOVN_RINGS_PREFETCH_H
#define ZOVN_RINGS_PREFETCH_H

/* Take a cache line from the other CPU. For GCC's own call x86-64 has no such instruction, and what it uses
 * instead leaves the line with both: it then is asked for once more when it is written. CPUs that do not
 * know PREFETCHW do nothing. An address that is wrong does no harm. */
static inline void zovn_prefetch_to_write(const void *at) {
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

#endif
