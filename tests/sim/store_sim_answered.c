/* Answers of control calls, as the run store in memory keeps them. */
#include "tests/sim/store_sim.h"

struct kept {
    int kind;
    struct buf reply;
};

static struct slice key_of(const uint8_t id[16])
{
    return slice_make(id, 16);
}

void store_sim_keep(struct world *w, const struct store_answer *a)
{
    struct proc *before = proc_enter(NULL);
    struct kept *k = map_get(&w->answered, key_of(a->request_id));
    if (!k) {
        k = xcalloc(1, sizeof(*k));
        (void)map_put(&w->answered, key_of(a->request_id), k);
    }
    k->kind = a->kind;
    buf_clear(&k->reply);
    buf_add(&k->reply, a->reply.p, a->reply.len);
    proc_leave(before);
}

void store_sim_forget_answers(struct world *w)
{
    for (struct map_iter it = map_begin(&w->answered); map_next(&it);) {
        struct kept *k = it.value;
        buf_fini(&k->reply);
        free(k);
    }
    map_fini(&w->answered);
}

static int fill_get(struct read *r)
{
    struct store_answer *out = r->out;
    const struct kept *k = map_get(&r->s->p->w->answered, key_of(out->request_id));
    if (!k) {
        return err_set(&r->op->err, ERR_NOT_FOUND, "this call was not answered yet");
    }
    out->kind = k->kind;
    out->reply = slice_make(arena_dup(r->op->arena, k->reply.p, k->reply.len), k->reply.len);
    return 0;
}

void store_answered_get(struct store *s, struct store_op *op, const uint8_t request_id[16],
                        struct store_answer *out)
{
    memcpy(out->request_id, request_id, sizeof(out->request_id));
    store_sim_read(s, op, fill_get)->out = out;
}

static int fill_put(struct read *r)
{
    if (!r->s->leading) {
        return err_set(&r->op->err, ERR_STORE_LEADER, "run store: not the leader");
    }
    store_sim_keep(r->s->p->w, r->in);
    return 0;
}

void store_answered_put(struct store *s, struct store_op *op, const struct store_answer *a)
{
    store_sim_read(s, op, fill_put)->in = a;
}
