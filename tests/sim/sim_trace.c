/* The committed rows of one simulated world, a line each: what a replay is read by. */
#include "tests/sim/sim_world.h"

#include <stdio.h>

#define U(n) ((unsigned long long)(n))

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

static void trace_move(const char *what, const char *id, const char *from, const char *to)
{
    printf("%s %s: %s -> %s", what, id, from, to);
}

static void trace_row(const struct row *r)
{
    char id[24];
    switch (r->op) {
    case ROW_RUN_INSERT:
        printf("run %s of unit %llu", r->u.run.id, U(r->u.run.unit));
        break;
    case ROW_RUN_MOVE:
        trace_move("run", r->u.run.id, run_state_name(r->u.run.from),
                   run_state_name(r->u.run.state));
        printf(" %s", or_dash(r->u.run.error));
        break;
    case ROW_RUN_STOP:
    case ROW_RUN_DELETE:
        printf("run %s: %s", r->u.run.id, r->op == ROW_RUN_STOP ? "stop" : "deleted");
        break;
    case ROW_JOB_INSERT:
        printf("job %llu %s at place %llu of run %s, %s", U(r->u.job.id),
               job_kind_name(r->u.job.kind), U(r->u.job.place), or_dash(r->u.job.run),
               job_state_name(r->u.job.state));
        break;
    case ROW_JOB_MOVE:
    case ROW_JOB_UPDATE:
        snprintf(id, sizeof(id), "%llu", U(r->u.job.id));
        trace_move("job", id, job_state_name(r->u.job.from), job_state_name(r->u.job.state));
        printf(" (%d attempts) %s", r->u.job.attempts, or_dash(r->u.job.error));
        break;
    case ROW_ATTEMPT_INSERT:
        printf("attempt %llu of job %llu by %s%s", U(r->u.attempt.token), U(r->u.attempt.job),
               r->u.attempt.builder, r->u.attempt.is_resolve ? ", a resolve" : "");
        break;
    case ROW_ATTEMPT_MOVE:
        snprintf(id, sizeof(id), "%llu", U(r->u.attempt.token));
        trace_move("attempt", id, attempt_state_name(r->u.attempt.from),
                   attempt_state_name(r->u.attempt.state));
        printf(" %s", or_dash(r->u.attempt.error));
        break;
    case ROW_GENERATION_INSERT:
    case ROW_GENERATION_MOVE:
        trace_move("generation", r->u.generation.g.id, generation_state_name(r->u.generation.from),
                   generation_state_name(r->u.generation.state));
        printf(" token %llu", U(r->u.generation.g.token));
        break;
    case ROW_BINDING_SET:
        printf("set of unit %llu at %llu: %zu bindings, cause %s", U(r->u.set.unit),
               U(r->u.set.epoch), r->u.set.n, r->u.set.cause);
        break;
    case ROW_UNIT:
    case ROW_UNIT_DELETE:
        printf("unit %llu%s", U(r->u.unit.id), r->op == ROW_UNIT ? "" : " deleted");
        break;
    default:
        printf("row %d", r->op);
        break;
    }
    printf("\n");
}

void sim_trace(const struct sim *s, const struct rows *rows)
{
    for (size_t i = 0; s->trace && i < rows->n; i++) {
        printf("%8llu  ", U(s->now_ms));
        trace_row(&rows->items[i]);
    }
}
