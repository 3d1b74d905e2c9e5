#include "services/kiln/up_launch.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { AT_PARENT = 2, AT_SIGNAL, AT_USER, AT_PROGRAM };

static int become(const char *name)
{
    const struct passwd *who = getpwnam(name);
    if (!who) {
        (void)fprintf(stderr, "kiln: there is no user '%s' on this machine\n", name);
        return -1;
    }
    if (initgroups(name, who->pw_gid) || setgid(who->pw_gid) || setuid(who->pw_uid)) {
        (void)fprintf(stderr, "kiln: cannot become user '%s': %s\n", name, strerror(errno));
        return -1;
    }
    return 0;
}

int up_launch_main(int argc, char **argv, bool *was_child)
{
    *was_child = argc > AT_PROGRAM && strcmp(argv[1], "--child") == 0;
    if (!*was_child) {
        return 0;
    }
    (void)setsid();
    if (strcmp(argv[AT_USER], "-") != 0 && become(argv[AT_USER])) {
        return UP_LAUNCH_FAILED;
    }
    /* After setuid, which clears it. The parent may be gone already. */
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)atol(argv[AT_SIGNAL]), 0, 0, 0);
    if ((long)getppid() != atol(argv[AT_PARENT])) {
        return UP_LAUNCH_FAILED;
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, 0); /* a connection of ours is none of its business */
    (void)execv(argv[AT_PROGRAM], argv + AT_PROGRAM);
    (void)fprintf(stderr, "kiln: cannot run %s: %s\n", argv[AT_PROGRAM], strerror(errno));
    return UP_LAUNCH_NO_PROGRAM;
}
