/* A root of generations in a folder of its own: what the tests of generations share. */
#pragma once
#include "common/generation/generation.h"
#include <check.h>

#define ID_1 "01HF7YAT00AAAAAAAAAAAAAAAA"
#define ID_2 "01HF7YAT01AAAAAAAAAAAAAAAA"
#define S INT64_C(1000000) /* a second, as times of owners and sweeps count it */

extern char root[64];
extern struct arena arena;
extern struct err e;
extern const struct uuid us, them;

void generation_setup(void);    /* an empty root */
void generation_teardown(void); /* removes it with all that is in it */

struct generation_ref ref_of(const char *id);           /* of dataset "sales" */
const char *path_of(const char *id, const char *file);  /* in the arena */
void write_file(const char *path, const char *text);    /* anew */
const char *read_file(const char *path);                /* its text, in the arena */
struct generation_manifest manifest_of(uint64_t token); /* of ours, with two columns */
void make(const char *id, uint64_t token);              /* with two files, published */
bool is_there(const char *id);                          /* its folder */
int look(const char *id, enum generation_depth depth);  /* reads and verifies it */
