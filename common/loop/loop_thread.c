/* A loop on a thread of its own. */
#include "common/loop/loop_internal.h"
#include <signal.h>

static void *run_thread(void *data)
{
    loop_run(data);
    return NULL;
}

/* Signals are for the thread that started the process: none is taken here. */
void loop_thread_start(struct loop_thread *t, struct loop *l)
{
    sigset_t all, before;
    sigfillset(&all);
    must(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    must(pthread_create(&t->id, NULL, run_thread, l) == 0);
    must(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    t->loop = l;
}

void loop_thread_join(struct loop_thread *t)
{
    must(pthread_join(t->id, NULL) == 0);
    t->loop->owner = pthread_self();
}

unsigned loop_cores(void)
{
    unsigned n = uv_available_parallelism();
    return n ? n : 1;
}
