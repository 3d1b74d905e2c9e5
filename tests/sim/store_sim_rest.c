/* What of store.h no scenario of this world comes to: said, not answered. */
#include "services/planner/store/store.h"

static NORETURN void not_here(const char *what)
{
    must_failed(what, __FILE__, __LINE__);
}

void store_put_environment(struct store *s, struct store_op *op, const struct store_environment *e,
                           uint64_t *out_id)
{
    (void)s, (void)op, (void)e, (void)out_id;
    not_here("environments are given in this world");
}

void store_delete_environment(struct store *s, struct store_op *op, uint64_t id)
{
    (void)s, (void)op, (void)id;
    not_here("environments are given in this world");
}

void store_put_connection(struct store *s, struct store_op *op, const struct store_connection *c,
                          bool insert_only)
{
    (void)s, (void)op, (void)c, (void)insert_only;
    not_here("connections are given in this world");
}

void store_delete_connection(struct store *s, struct store_op *op, uint64_t environment,
                             const char *name)
{
    (void)s, (void)op, (void)environment, (void)name;
    not_here("connections are given in this world");
}

void store_event_insert(struct store *s, struct store_op *op, struct store_event *e)
{
    (void)s, (void)op, (void)e;
    not_here("nobody publishes by webhook in this world");
}

void store_event_move(struct store *s, struct store_op *op, uint64_t id, const char *from,
                      const char *to, const char *run, const char *error)
{
    (void)s, (void)op, (void)id, (void)from, (void)to, (void)run, (void)error;
    not_here("nobody publishes by webhook in this world");
}

void store_event_get(struct store *s, struct store_op *op, const char *public_id,
                     struct store_event *out)
{
    (void)s, (void)op, (void)public_id, (void)out;
    not_here("nobody publishes by webhook in this world");
}

void store_wipe(struct store *s, struct store_op *op)
{
    (void)s, (void)op;
    not_here("nothing is wiped in this world");
}
