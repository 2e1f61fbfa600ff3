// Memory that is there or ends the program.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

static void *required(void *memory) {
    if (memory == NULL) {
        fputs("error: out of memory; simulate fewer servers, VMs or queries\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

void *memory_new(size_t count, size_t size) {
    return required(calloc(count ? count : 1, size));
}

void *memory_grow(void *old, size_t count, size_t size) {
    return required(count > SIZE_MAX / size ? NULL : realloc(old, count * size));
}
