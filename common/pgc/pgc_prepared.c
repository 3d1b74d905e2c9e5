#include "common/pgc/pgc_internal.h"

#include <stdio.h>

void pgc_prepared_init(struct pgc_prepared_set *s)
{
    map_init(&s->by_name);
    list_init(&s->lru);
    list_init(&s->dropped);
    s->n = 0;
    s->last = 0;
}

void pgc_prepared_free(struct pgc_prepared *p)
{
    free(p->name);
    free(p->sql);
    free(p);
}

static void free_all(struct list *l)
{
    struct list *it;
    while ((it = list_take_head(l)) != NULL) {
        pgc_prepared_free(list_entry(it, struct pgc_prepared, link));
    }
}

void pgc_prepared_fini(struct pgc_prepared_set *s)
{
    free_all(&s->lru);
    free_all(&s->dropped);
    map_fini(&s->by_name);
}

struct pgc_prepared *pgc_prepared_find(struct pgc_prepared_set *s, const char *name,
                                       const char *sql)
{
    struct pgc_prepared *p = map_get(&s->by_name, slice_of(name));
    if (!p || strcmp(p->sql, sql) != 0) {
        return NULL;
    }
    list_del(&p->link);
    list_add_tail(&s->lru, &p->link);
    return p;
}

struct pgc_prepared *pgc_prepared_new(struct pgc_prepared_set *s, const char *name, const char *sql)
{
    struct pgc_prepared *p = xcalloc(1, sizeof *p);
    list_init(&p->link);
    p->name = xstrdup(name);
    p->sql = xstrdup(sql);
    snprintf(p->server_name, sizeof p->server_name, "k%u", ++s->last);
    return p;
}

void pgc_prepared_forget(struct pgc_prepared_set *s, const char *name)
{
    struct pgc_prepared *p = map_del(&s->by_name, slice_of(name));
    if (!p) {
        return;
    }
    list_del(&p->link);
    list_add_tail(&s->dropped, &p->link);
    s->n--;
}

void pgc_prepared_keep(struct pgc_prepared_set *s, struct pgc_prepared *p)
{
    pgc_prepared_forget(s, p->name);
    map_put(&s->by_name, slice_of(p->name), p);
    list_add_tail(&s->lru, &p->link);
    s->n++;
}

void pgc_prepared_trim(struct pgc_prepared_set *s)
{
    while (s->n > PGC_PREPARED_MAX) {
        pgc_prepared_forget(s, list_entry(s->lru.next, struct pgc_prepared, link)->name);
    }
}
