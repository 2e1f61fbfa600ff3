/* All that runs on a bare kernel: loads a BPF program and takes the steps in /steps with it.
 *
 *   load OBJECT PROGRAM   as xtc/kernel/bpf.py does; where it fails, libbpf prints why
 *   set MAP KEY FILE      writes a map's value
 *   run FILE              gives the program a frame and prints what becomes of it
 *
 * The first step that fails is the last. Then the machine is switched off. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LARGEST = 1 << 16, WORD = 64 };

static struct bpf_object *object;
static struct bpf_program *program;
static char content[LARGEST];

static int say(enum libbpf_print_level level, const char *words, va_list arguments) {
    return level == LIBBPF_DEBUG ? 0 : vprintf(words, arguments);
}

static size_t read_file(const char *path) {
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(content, 1, LARGEST, file) : 0;
    if (file) {
        fclose(file);
    }
    return length;
}

static int load(const char *path, const char *name) {
    object = bpf_object__open_file(path, NULL);
    program = object ? bpf_object__find_program_by_name(object, name) : NULL;
    return program ? bpf_object__load(object) : -ENOENT;
}

static int set(const char *name, __u32 key, const char *path) {
    struct bpf_map *map = object ? bpf_object__find_map_by_name(object, name) : NULL;
    if (!map || read_file(path) != bpf_map__value_size(map)) {
        return -EINVAL;
    }
    return bpf_map_update_elem(bpf_map__fd(map), &key, content, BPF_ANY);
}

static int run(const char *path) {
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = content, .repeat = 1);
    options.data_size_in = read_file(path);
    int failed = program ? bpf_prog_test_run_opts(bpf_program__fd(program), &options) : -ENOENT;
    if (!failed) {
        printf("[xtc] %s: %d\n", path, (int)options.retval);
    }
    return failed;
}

static int take(const char *step) {
    char first[WORD], second[WORD];
    __u32 key;
    if (sscanf(step, "load %63s %63s", first, second) == 2) {
        return load(first, second);
    }
    if (sscanf(step, "set %63s %u %63s", first, &key, second) == 3) {
        return set(first, key, second);
    }
    return sscanf(step, "run %63s", first) == 1 ? run(first) : -EINVAL;
}

int main(void) {
    struct utsname host;
    char step[3 * WORD] = "";
    FILE *steps = fopen("/steps", "r");
    int failed = steps ? 0 : -errno;

    setvbuf(stdout, NULL, _IONBF, 0);
    libbpf_set_print(say);
    uname(&host);
    printf("[xtc] Linux %s\n", host.release);
    while (!failed && fgets(step, sizeof(step), steps)) {
        failed = take(step);
    }
    printf("[xtc] %s %s\n", failed ? strerror(-failed) : "done", failed ? step : "");
    return reboot(RB_POWER_OFF);
}
