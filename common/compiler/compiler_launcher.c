/* What runs between our exec and Node's: a process that gives up what the compiler must not have.
 */
#include "common/compiler/compiler_internal.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_UNKNOWN_FD 4 /* 0-2 and the channel stay */

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp: name this machine's AUDIT_ARCH"
#endif

#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define DENY(number, error)                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(number), 0, 1),                                 \
        ANSWER(SECCOMP_RET_ERRNO | (error))

/* No network, and no way to reach into other processes. io_uring could open sockets past a filter;
 * ENOSYS lets libuv go on without it. */
static const struct sock_filter rules[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
#if defined(__x86_64__)
    /* the x32 numbers would be a second door */
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000U, 0, 1),
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
#endif
    DENY(SYS_socket, EACCES),
    DENY(SYS_connect, EACCES),
    DENY(SYS_bind, EACCES),
    DENY(SYS_io_uring_setup, ENOSYS),
    DENY(SYS_ptrace, EPERM),
    DENY(SYS_process_vm_readv, EPERM),
    DENY(SYS_process_vm_writev, EPERM),
    ANSWER(SECCOMP_RET_ALLOW),
};

static void close_unknown(void)
{
    if (close_range(FIRST_UNKNOWN_FD, ~0U, 0) == 0) {
        return;
    }
    long last = sysconf(_SC_OPEN_MAX); /* a kernel before 5.9 */
    for (int fd = FIRST_UNKNOWN_FD; fd < (last > 0 && last < 65536 ? (int)last : 65536); fd++) {
        (void)close(fd);
    }
}

/* The parent may have died before PDEATHSIG was set; pid 1 is a parent like any other. */
static bool parent_is_gone(void)
{
    const char *text = getenv(COMPILER_PARENT_ENV);
    bool gone = text && atol(text) != (long)getppid();
    (void)unsetenv(COMPILER_PARENT_ENV);
    return gone;
}

static int confine(void)
{
    close_unknown();
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    struct sock_filter copy[ARRAY_LEN(rules)];
    memcpy(copy, rules, sizeof rules);
    const struct sock_fprog program = {ARRAY_LEN(copy), copy};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("kiln compiler launcher: cannot confine the compiler, seccomp");
        return -1;
    }
    return 0;
}

int compiler_child_main(int argc, char **argv, bool *was_child)
{
    *was_child = argc > 2 && strcmp(argv[1], "--compiler-child") == 0;
    if (!*was_child) {
        return 0;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent_is_gone()) {
        return 0;
    }
    if (confine()) {
        return 126;
    }
    (void)execvp(argv[2], argv + 2);
    (void)fprintf(stderr, "kiln compiler launcher: cannot run %s: %s\n", argv[2], strerror(errno));
    return 127;
}
