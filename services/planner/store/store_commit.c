/* The commit queue: strictly in the order of the calls, on one held session, several commits to a
 * transaction when they wait. */
#include "services/planner/store/store_internal.h"

enum { GROUP_COMMITS = 100, GROUP_ROWS = 2000 };

static void item_end(struct commit_item *it, int rc, const char *why)
{
    struct store_op *op = it->op;
    op->rc = rc;
    if (rc < 0 && why) {
        err_set(&op->err, rc, "%s", why);
    }
    free(it);
    op->done(op);
}

static void list_move(struct list *from, struct list *to)
{
    struct list *item;
    while ((item = list_take_head(from)) != NULL) {
        list_add_tail(to, item);
    }
}

static void end_all(struct list *items, int rc, const char *why)
{
    struct list taken, *item;
    list_init(&taken);
    list_move(items, &taken);
    while ((item = list_take_head(&taken)) != NULL) {
        item_end(list_entry(item, struct commit_item, link), rc, why);
    }
}

void queue_fail(struct store *s, int code, const char *why)
{
    end_all(&s->queue.waiting, code, why);
}

static void group_ended(struct store *s, int rc, const char *why)
{
    struct store_queue *q = &s->queue;
    pgc_batch_fini(&q->batch);
    end_all(&q->in_flight, rc, why);
    arena_reset(&q->arena);
    q->busy = false;
}

/* A load of the coordinator reads its results before they go; what it finds wrong is its own
 * matter. */
static int finish_single(struct store_queue *q)
{
    struct commit_item *it = list_entry(q->in_flight.next, struct commit_item, link);
    return it->finish ? it->finish(it, &q->batch) : 0;
}

static void on_group(struct pgc_batch *b)
{
    struct store *s = b->data;
    struct store_queue *q = &s->queue;
    struct err e;
    err_clear(&e);
    int rc = store_fault(b, &e);
    if (rc == 0) {
        group_ended(s, finish_single(q), NULL);
    } else {
        group_ended(s, rc, e.text);
        store_lose(s, rc, e.text);
    }
    if (s->lost_code) {
        store_lost_now(s);
    }
    if (s->closing) {
        store_close_step(s);
        return;
    }
    queue_kick(s);
}

static void take_group(struct store *s)
{
    struct store_queue *q = &s->queue;
    size_t n = 0, n_rows = 0;
    while (!list_empty(&q->waiting) && n < GROUP_COMMITS && n_rows < GROUP_ROWS) {
        struct commit_item *it = list_entry(q->waiting.next, struct commit_item, link);
        if (!it->rows && n > 0) {
            return;
        }
        list_del(&it->link);
        list_add_tail(&q->in_flight, &it->link);
        n++;
        if (!it->rows) {
            it->build(it, &q->stmts);
            return;
        }
        n_rows += it->rows->n;
        for (size_t i = 0; i < it->rows->n; i++) {
            row_stmts(s, &q->stmts, &it->rows->items[i]);
        }
        if (it->op->answer) {
            answer_stmts(&q->stmts, it->op->answer);
        }
    }
}

static void start_group(struct store *s)
{
    struct store_queue *q = &s->queue;
    q->busy = true;
    stmts_init(&q->stmts, &q->arena);
    add_guard(s, &q->stmts);
    take_group(s);
    stmts_end(&q->stmts);
    q->batch = (struct pgc_batch){.stmts = q->stmts.items,
                                  .n = q->stmts.n,
                                  .on = s->conn,
                                  .timeout = MS(30000),
                                  .done = on_group,
                                  .data = s};
    pgc_batch_start(s->pool, &q->batch);
}

void queue_kick(struct store *s)
{
    if (s->leading && !s->closing && !s->queue.busy && !list_empty(&s->queue.waiting)) {
        start_group(s);
    }
}

/* Starting waits for the end of the turn, so that commits of one turn share a transaction. */
static void on_kick(struct loop_task *t)
{
    struct store *s = container_of(t, struct store, queue.kick);
    if (s->closing) {
        end_all(&s->queue.refused, ERR_SHUTDOWN, "run store: the planner is shutting down");
    } else {
        end_all(&s->queue.refused, ERR_STORE_LEADER, "run store: this planner is not the leader");
    }
    queue_kick(s);
}

void queue_init(struct store *s)
{
    struct store_queue *q = &s->queue;
    list_init(&q->waiting);
    list_init(&q->in_flight);
    list_init(&q->refused);
    arena_init(&q->arena);
    loop_task_init(&q->kick, on_kick, s);
}

void queue_close(struct store *s)
{
    list_move(&s->queue.waiting, &s->queue.refused);
    loop_defer(s->loop, &s->queue.kick);
}

void queue_fini(struct store *s)
{
    struct store_queue *q = &s->queue;
    must(list_empty(&q->waiting) && list_empty(&q->in_flight) && list_empty(&q->refused));
    loop_task_cancel(&q->kick);
    arena_fini(&q->arena);
}

struct commit_item *queue_add(struct store *s, struct store_op *op)
{
    struct commit_item *it = xcalloc(1, sizeof *it);
    it->s = s;
    it->op = op;
    err_clear(&op->err);
    bool taken = s->leading && !s->closing && !s->lost_code;
    list_add_tail(taken ? &s->queue.waiting : &s->queue.refused, &it->link);
    loop_defer(s->loop, &s->queue.kick);
    return it;
}

void store_commit(struct store *s, struct store_op *op, const struct rows *rows)
{
    queue_add(s, op)->rows = rows;
}
