/* Errands: one item goes to the main loop and comes back; a cancel is a second one, and done waits
 * for both. */
#include "services/gateway/port.h"

static void on_back(struct inbox_item *item, struct gw_errand *e)
{
    (void)item;
    loop_assert_here(e->w->loop);
    if (--e->out == 0) {
        e->done(e);
    }
}

static void on_go_back(struct inbox_item *item)
{
    on_back(item, container_of(item, struct gw_errand, go));
}

static void on_halt_back(struct inbox_item *item)
{
    on_back(item, container_of(item, struct gw_errand, halt));
}

static void on_go(struct inbox_item *item)
{
    struct gw_errand *e = container_of(item, struct gw_errand, go);
    loop_assert_here(e->w->g->loop);
    e->run(e);
}

static void on_halt(struct inbox_item *item)
{
    struct gw_errand *e = container_of(item, struct gw_errand, halt);
    struct gw_worker *w = e->w;
    loop_assert_here(w->g->loop);
    if (!e->over) {
        e->stop(e);
    }
    item->fn = on_halt_back;
    loop_post(w->loop, item);
}

void gw_errand_start(struct gw_errand *e)
{
    loop_assert_here(e->w->loop);
    e->out = 1;
    e->halted = e->over = false;
    e->go = (struct inbox_item){.fn = on_go};
    loop_post(e->w->g->loop, &e->go);
}

void gw_errand_cancel(struct gw_errand *e)
{
    loop_assert_here(e->w->loop);
    if (e->halted || e->out == 0) {
        return;
    }
    e->halted = true;
    e->out++;
    e->halt = (struct inbox_item){.fn = on_halt};
    loop_post(e->w->g->loop, &e->halt);
}

void gw_errand_over(struct gw_errand *e)
{
    struct gw_worker *w = e->w;
    loop_assert_here(w->g->loop);
    must(!e->over);
    e->over = true;
    e->go.fn = on_go_back;
    loop_post(w->loop, &e->go);
}

void gw_tell_main(struct gw_worker *w, struct inbox_item *item, void (*fn)(struct inbox_item *item))
{
    loop_assert_here(w->loop);
    item->fn = fn;
    loop_post(w->g->loop, item);
}
