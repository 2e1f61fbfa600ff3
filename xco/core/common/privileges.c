// Drops what a program does not need after its start: capabilities, and system calls that only an
// intruder would make.
#include "common/privileges.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define FOREIGN 0x40000000u // x32 system calls have other numbers
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define FOREIGN UINT32_MAX
#endif

static const uint32_t DENIED[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_open_by_handle_at,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_userfaultfd,
};

enum { DENIALS = sizeof DENIED / sizeof DENIED[0] };

#if defined(ARCHITECTURE)
// A denied call fails with EPERM; one of another architecture ends the process.
static bool deny_calls(void) {
    struct sock_filter code[DENIALS + 7] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, DENIALS + 1, 0),
    };
    for (unsigned i = 0; i < DENIALS; i++) {
        code[5 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DENIED[i],
                                                   (uint8_t)(DENIALS - i), 0);
    }
    code[DENIALS + 5] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[DENIALS + 6] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
static bool deny_calls(void) {
    return true; // system call numbers are known only for the architectures above
}
#endif

// A program without root may have nothing to drop and no right to drop it.
static void bound(uint64_t keep) {
    for (unsigned capability = 0; capability < 64; capability++) {
        if ((keep >> capability & 1) == 0) {
            (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static bool keep_only(uint64_t keep) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct halves[2];
    if (syscall(SYS_capget, &header, halves) != 0) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t mask = (uint32_t)(keep >> (32 * i));
        halves[i].effective &= mask;
        halves[i].permitted &= mask;
        halves[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, halves) == 0;
}

bool xco_privileges_drop(uint64_t keep) {
    bound(keep);
    return keep_only(keep) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && deny_calls();
}
