/* A world with a scripted clock for flows, and the flow under test in it. */
#pragma once
#include "common/flow/flow.h"
#include <check.h>

/* Deferred flows in a queue, one armed deadline per flow. */
enum { MAX_FLOWS = 16 };
struct world {
    struct flow_env env;
    struct ms now;
    struct flow *queue[MAX_FLOWS];
    size_t n_queue;
    struct {
        struct flow *f;
        struct ms at;
    } armed[MAX_FLOWS];
};
void world_init(struct world *w);
void turn(struct world *w);               /* runs what was deferred until now */
void settle(struct world *w);             /* turns until nothing is deferred */
void pass(struct world *w, int64_t span); /* lets time pass; what is due sees its deadline */
bool is_armed(struct world *w, struct flow *f);

/* The flow under test: ASK -> WORK -> COMMIT (shielded) -> CLEAN -> END; it notes what it sees. */
enum { ASK, WORK, COMMIT, CLEAN, DONE };
struct job {
    struct flow flow;
    struct flow child;
    char trail[256];
    int cancels; /* calls of WORK's cancel */
    int ended, freed;
    int seen_rc[5]; /* f->rc per step when its wait was over */
    bool seen_timed_out;
    bool skip_ask; /* ASK goes straight on */
    bool circle;   /* ASK runs in circles */
    bool poll;     /* WORK waits again and again */
    char *note;    /* in the arena */
    char *note_at_end;
};
extern const struct flow_type job_type;
void start(struct job *j, struct world *w);
void begin(struct job *j, struct world *w); /* a world of its own, and its first turn */
void on_job_end(struct flow *f);            /* of a struct job: what `start` sets */
void job_fini(struct job *j);
