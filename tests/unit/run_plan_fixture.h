/* What warehouse and store say about the targets of pw's plan, and the run that follows. */
#pragma once
#include "tests/unit/plan_fixture.h"

struct run_plan_world {
    struct target_state states[PW_MAX];
    struct current_generation generations[PW_MAX];
    struct run_plan_input in;
    struct run_plan run;
    struct err err;
};
extern struct run_plan_world rp;
/* Plans the package; every target was asked about, nothing is there, everything is allowed. */
void rp_ready(void);
Kiln__Mc__Model *rp_one_source(void); /* daily into mart.daily, ready */
void rp_stands(size_t i);             /* target i stands as its generation G was published */
const char *const *rp_names(const char *name);
void rp_name_only(const char *name);
const struct plan_target *rp_make(void); /* the run's targets */
Suite *run_plan_scope_suite(void);       /* the second half of run_plan_test */
