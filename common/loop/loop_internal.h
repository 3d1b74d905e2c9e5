/* Inside of the loop: what its files share. Not for anyone else. */
#pragma once
#include "common/loop/loop.h"
#include <pthread.h>
#include <uv.h>

struct loop {
    uv_loop_t uv;
    pthread_t owner;  /* the thread it runs on */
    uv_timer_t timer; /* the one timer under the heap */
    uv_timer_t turn;  /* bounds loop_turn */
    uv_idle_t idle;   /* active while tasks wait: runs them, and keeps the poll from blocking */
    uv_async_t wake;  /* the inbox rang */
    uv_signal_t term; /* SIGTERM */
    uv_signal_t intr; /* SIGINT */
    bool stopped;     /* loop_stop was called */
    bool in_turn;     /* inside of loop_turn: whatever has run, its poll must not block */
    bool firing;      /* due timers are being called: the uv timer is set once at the end */
    struct loop_timer **heap; /* by due */
    size_t n_heap, heap_cap;
    struct list tasks;                     /* of struct loop_task */
    _Atomic(struct inbox_item *) inbox;    /* newest first; any thread pushes */
    struct inbox_item *taken, **taken_end; /* oldest first; loop thread only */
    size_t offloads;                       /* jobs that have not come back */
    struct flow_env env;
    void (*on_signal)(void *data, int signum);
    void *signal_data;
};

void loop_note_progress(struct loop *l); /* a timer has fired */
void loop_timer_setup(struct loop *l);
void loop_flow_setup(struct loop *l);
void loop_inbox_setup(struct loop *l);
