#include "tests/unit/generation_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

char root[64];
struct arena arena;
struct err e;
const struct uuid us = {{1}}, them = {{2}};
static struct generation_column columns[] = {{"n", "HUGEINT", "BIGINT"},
                                             {"ü \"x\"", "DATE", "DATE"}};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void generation_setup(void)
{
    arena_init(&arena);
    snprintf(root, sizeof root, "/tmp/kt-gen.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

void generation_teardown(void)
{
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&arena);
}

struct generation_ref ref_of(const char *id)
{
    return (struct generation_ref){root, "sales", id};
}

const char *path_of(const char *id, const char *file)
{
    return arena_printf(&arena, "%s/sales/%s/%s", root, id, file);
}

void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

const char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    char *text = arena_zalloc(&arena, 65536);
    (void)!fread(text, 1, 65535, f);
    (void)fclose(f);
    return text;
}

struct generation_manifest manifest_of(uint64_t token)
{
    return (struct generation_manifest){.installation = us,
                                        .target = "Sales \"x\"",
                                        .build_id = "b1",
                                        .token = token,
                                        .rows = 7,
                                        .data_as_of_us = 1700000000123456,
                                        .columns = columns,
                                        .n_columns = 2};
}

void make(const char *id, uint64_t token)
{
    const struct generation_ref r = ref_of(id);
    struct generation_manifest m = manifest_of(token);
    ck_assert_msg(generation_begin(&r, token, &e) == 0, "%s", e.text);
    write_file(path_of(id, "data-0.parquet"), "some rows");
    write_file(path_of(id, "data-1.parquet"), "more rows in another file");
    ck_assert_msg(generation_publish(&arena, &r, &m, &e) == 0, "%s", e.text);
}

bool is_there(const char *id)
{
    return access(path_of(id, ""), F_OK) == 0;
}

int look(const char *id, enum generation_depth depth)
{
    const struct generation_ref r = ref_of(id);
    struct generation_manifest m;
    int rc = generation_read(&arena, &r, &m, &e);
    return rc < 0 ? rc : generation_verify(&r, &m, depth, &e);
}
