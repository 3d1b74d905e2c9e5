/* Names of the state machines and their moves, all from states.def. */
#include "services/planner/core/rows.h"

static const struct state_row state_table[] = {
#define STATE(machine, name, rest, flags) {#machine, #name, rest, #flags},
#define MOVE(machine, from, to, on)
#include "services/planner/core/states.def"
#undef STATE
#undef MOVE
};
static const struct move_row move_table[] = {
#define STATE(machine, name, rest, flags)
#define MOVE(machine, from, to, on) {#machine, #from, #to, on},
#include "services/planner/core/states.def"
#undef STATE
#undef MOVE
};
static const char *const kind_names[] = {
    [KIND_BUILD] = "build", [KIND_RESOLVE] = "resolve",   [KIND_DROP] = "drop",
    [KIND_PROBE] = "probe", [KIND_DESCRIBE] = "describe", [KIND_SWEEP] = "sweep",
};

const struct state_row *states_rows(size_t *n)
{
    *n = ARRAY_LEN(state_table);
    return state_table;
}

const struct move_row *states_moves(size_t *n)
{
    *n = ARRAY_LEN(move_table);
    return move_table;
}

/* States stand in the table in the order of their enum, machine by machine. */
static const struct state_row *state_at(const char *machine, int at)
{
    for (size_t i = 0; i < ARRAY_LEN(state_table); i++) {
        if (strcmp(state_table[i].machine, machine) == 0 && at-- == 0) {
            return &state_table[i];
        }
    }
    must_failed("the state stands in states.def", __FILE__, __LINE__);
}

static int state_find(const char *machine, const char *name)
{
    int at = 0;
    for (size_t i = 0; i < ARRAY_LEN(state_table); i++) {
        if (strcmp(state_table[i].machine, machine) != 0) {
            continue;
        }
        if (strcmp(state_table[i].name, name) == 0) {
            return at;
        }
        at++;
    }
    return -1;
}

static bool has_flag(const struct state_row *s, char flag)
{
    return strchr(s->flags, flag) != NULL;
}

const char *run_state_name(enum run_state s)
{
    return state_at("run", (int)s)->name;
}

const char *run_state_rest(enum run_state s)
{
    return state_at("run", (int)s)->rest;
}

const char *job_state_name(enum job_state s)
{
    return state_at("job", (int)s)->name;
}

const char *job_kind_name(enum job_kind k)
{
    return kind_names[k];
}

const char *attempt_state_name(enum attempt_state s)
{
    return state_at("attempt", (int)s)->name;
}

const char *generation_state_name(enum generation_state s)
{
    return state_at("generation", (int)s)->name;
}

int run_state_parse(const char *name, enum run_state *out)
{
    int at = state_find("run", name);
    if (at < 0) {
        return -1;
    }
    *out = (enum run_state)at;
    return 0;
}

int job_state_parse(const char *name, enum job_state *out)
{
    int at = state_find("job", name);
    if (at < 0) {
        return -1;
    }
    *out = (enum job_state)at;
    return 0;
}

int job_kind_parse(const char *name, enum job_kind *out)
{
    for (size_t i = KIND_BUILD; i < ARRAY_LEN(kind_names); i++) {
        if (strcmp(kind_names[i], name) == 0) {
            *out = (enum job_kind)i;
            return 0;
        }
    }
    return -1;
}

int attempt_state_parse(const char *name, enum attempt_state *out)
{
    int at = state_find("attempt", name);
    if (at < 0) {
        return -1;
    }
    *out = (enum attempt_state)at;
    return 0;
}

int generation_state_parse(const char *name, enum generation_state *out)
{
    int at = state_find("generation", name);
    if (at < 0) {
        return -1;
    }
    *out = (enum generation_state)at;
    return 0;
}

bool run_state_active(enum run_state s)
{
    return has_flag(state_at("run", (int)s), 'A');
}

bool job_state_ended(enum job_state s)
{
    return has_flag(state_at("job", (int)s), 'E');
}

bool states_move_allowed(const char *machine, const char *from, const char *to)
{
    for (size_t i = 0; i < ARRAY_LEN(move_table); i++) {
        const struct move_row *m = &move_table[i];
        if (strcmp(m->machine, machine) == 0 && strcmp(m->from, from) == 0 &&
            strcmp(m->to, to) == 0) {
            return true;
        }
    }
    return false;
}
