/* A package as the compiler would report it, built by hand, and its plan. */
#pragma once
#include "services/planner/core/plan_internal.h"
#include <check.h>

enum { PW_MAX = 64 };
struct plan_world {
    struct arena a;
    Kiln__Mc__Loaded loaded;
    Kiln__Mc__Model *models[PW_MAX];
    const char *paths[PW_MAX], *texts[PW_MAX];
    struct plan_connection
        connections[4]; /* pg and again on one database, duck is planned only, lab has no driver */
    struct plan_input in;
    struct package_plan plan;
};
extern struct plan_world pw;
void plan_up(void);
void plan_down(void);
void plan_again(void); /* forgets the plan, keeps the package */
void pw_manifest(const char *json);
/* A flagged model that compiles; text NULL: an empty file. */
Kiln__Mc__Model *pw_model(const char *path, const char *text);
/* A persist source of connection pg, walked and declared there; name NULL: no name=. */
Kiln__Mc__Source *pw_source(Kiln__Mc__Model *model, const char *source, const char *name);
/* An extension of base: its SQL, tag and name. */
Kiln__Mc__Source *pw_extend(Kiln__Mc__Model *model, const char *source,
                            const Kiln__Mc__Source *base);
void pw_tag(Kiln__Mc__Source *s, const char *key, const char *value);
void pw_metadata(Kiln__Mc__Source *s, const char *key, const char *value);
void pw_note(Kiln__Mc__Model *m, const char *key, const char *value);
void pw_reads(Kiln__Mc__Model *m, const char *connection, const char *path);
void pw_problem(Kiln__Mc__Model *m, const char *severity, const char *code, const char *message,
                uint32_t line);
void pw_depends(Kiln__Mc__Source *s, const Kiln__Mc__Source *upstream);
void pw_dropped(Kiln__Mc__Model *m, const char *name);
char **pw_list(char **list, size_t *n, const char *text); /* one more text in a repeated field */
const struct package_plan *pw_plan(void);

const struct planned_source *pw_row(const char *name);
const struct planned_target *pw_target(const char *source); /* NULL: none */
/* Reason code of the refusal of that source; NULL: not refused. */
const char *pw_refused(const char *name);
const char *pw_refused_text(const char *name);
bool has_note(const json_t *list, const char *subject, const char *fragment);
bool has_text(const char *text, const char *fragment);
Suite *plan_refusal_suite(void); /* the second half of plan_test */
