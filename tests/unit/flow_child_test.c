/* A flow that waits for another one. */
#include "tests/unit/flow_fixture.h"
#include "tests/unit/flow_suites.h"

/* Parent with one child: CALL starts it and waits for it. */
enum { CALL, CALL_DONE };
struct caller {
    struct flow flow;
    struct job *child;
    int rc;
    char text[ERR_TEXT_MAX];
    int child_freed; /* the child's on_end had run when we were resumed */
};

static enum flow_next step_call(struct flow *f)
{
    struct caller *c = container_of(f, struct caller, flow);
    if (f->entered) {
        c->child = xcalloc(1, sizeof(*c->child));
        c->child->flow.on_end = on_job_end;
        flow_start(&c->child->flow, &job_type, f->env, f);
        return FLOW_WAIT;
    }
    c->rc = f->rc;
    c->child_freed = c->child->freed;
    memcpy(c->text, f->err.text, sizeof(c->text));
    return flow_goto(f, CALL_DONE);
}

static void cancel_call(struct flow *f)
{
    flow_cancel(&container_of(f, struct caller, flow)->child->flow);
}

static enum flow_next step_call_done(struct flow *f)
{
    struct caller *c = container_of(f, struct caller, flow);
    job_fini(c->child);
    free(c->child);
    return FLOW_END;
}

static const struct flow_step caller_steps[] = {
    [CALL] = {"CALL", step_call, FLOW_TO(CALL_DONE), 1000, cancel_call, NULL, false},
    [CALL_DONE] = {"CALL_DONE", step_call_done, 0, 0, NULL, NULL, false},
};
static const struct flow_type caller_type = {"caller", caller_steps, 2};

START_TEST(parent_is_resumed_on_a_later_turn_with_the_childs_error)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);

    struct err e;
    (void)err_set(&e, ERR_STORE, "store is away");
    flow_resume(&c.child->flow, ERR_STORE, &e);
    flow_resume(&c.child->flow, 0, NULL);
    ck_assert_int_eq(c.child->ended, 1);
    ck_assert_int_eq(c.rc, 0); /* not inside the child's own resume */
    settle(&w);

    ck_assert_int_eq(c.rc, ERR_STORE);
    ck_assert_str_eq(c.text, "ask: store is away");
    ck_assert_int_eq(c.child_freed, 1);
    ck_assert(c.flow.ended);
    ck_assert(list_empty(&w.env.live));
}
END_TEST

START_TEST(cancel_of_a_parent_travels_through_its_child)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);

    flow_cancel(&c.flow);
    settle(&w);
    flow_resume(&c.child->flow, 0, NULL); /* CLEAN */
    settle(&w);

    ck_assert_int_eq(c.rc, ERR_CANCELLED);
    ck_assert(c.flow.ended);
}
END_TEST

START_TEST(cancel_of_a_child_that_has_just_ended_is_harmless)
{
    struct world w;
    world_init(&w);
    struct caller c = {0};
    flow_start(&c.flow, &caller_type, &w.env, NULL);
    settle(&w);
    for (int i = 0; i < 4; i++) {
        flow_resume(&c.child->flow, 0, NULL);
    }

    flow_cancel(&c.flow); /* between the child's END and the parent's resume */
    settle(&w);

    ck_assert_int_eq(c.rc, 0);
    ck_assert(c.flow.ended);
}
END_TEST

TCase *flow_child_tests(void)
{
    TCase *tc = tcase_create("children");
    tcase_add_test(tc, parent_is_resumed_on_a_later_turn_with_the_childs_error);
    tcase_add_test(tc, cancel_of_a_parent_travels_through_its_child);
    tcase_add_test(tc, cancel_of_a_child_that_has_just_ended_is_harmless);
    return tc;
}
