/* Generations on disk: published whole or not at all, found again, swept by record only. */
#include "common/generation/generation.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID_1 "01HF7YAT00AAAAAAAAAAAAAAAA"
#define ID_2 "01HF7YAT01AAAAAAAAAAAAAAAA"
#define S INT64_C(1000000)

static char root[64];
static struct arena arena;
static struct err e;
static const struct uuid us = {{1}}, them = {{2}};
static struct generation_column columns[] = {{"n", "HUGEINT", "BIGINT"},
                                             {"ü \"x\"", "DATE", "DATE"}};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void setup(void)
{
    arena_init(&arena);
    snprintf(root, sizeof root, "/tmp/kt-gen.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
    (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&arena);
}

static struct generation_ref ref_of(const char *id)
{
    return (struct generation_ref){root, "sales", id};
}

static const char *path_of(const char *id, const char *file)
{
    return arena_printf(&arena, "%s/sales/%s/%s", root, id, file);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static const char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    char *text = arena_zalloc(&arena, 65536);
    (void)!fread(text, 1, 65535, f);
    (void)fclose(f);
    return text;
}

static struct generation_manifest manifest_of(uint64_t token)
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

static void make(const char *id, uint64_t token)
{
    const struct generation_ref r = ref_of(id);
    struct generation_manifest m = manifest_of(token);
    ck_assert_msg(generation_begin(&r, token, &e) == 0, "%s", e.text);
    write_file(path_of(id, "data-0.parquet"), "some rows");
    write_file(path_of(id, "data-1.parquet"), "more rows in another file");
    ck_assert_msg(generation_publish(&arena, &r, &m, &e) == 0, "%s", e.text);
}

static bool is_there(const char *id)
{
    return access(path_of(id, ""), F_OK) == 0;
}

static int look(const char *id, enum generation_depth depth)
{
    const struct generation_ref r = ref_of(id);
    struct generation_manifest m;
    int rc = generation_read(&arena, &r, &m, &e);
    return rc < 0 ? rc : generation_verify(&r, &m, depth, &e);
}

START_TEST(what_is_published_is_read_back)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m;
    make(ID_1, 42);

    ck_assert_msg(generation_read(&arena, &r, &m, &e) == 0, "%s", e.text);
    ck_assert_int_eq(generation_verify(&r, &m, GENERATION_HASHES, &e), 0);
    ck_assert_str_eq(m.dataset, "sales");
    ck_assert_str_eq(m.id, ID_1);
    ck_assert_str_eq(m.target, "Sales \"x\"");
    ck_assert_str_eq(m.build_id, "b1");
    ck_assert(uuid_eq(&m.installation, &us));
    ck_assert_uint_eq(m.token, 42);
    ck_assert_uint_eq(m.rows, 7);
    ck_assert_uint_eq(m.bytes, 9 + 25);
    ck_assert_int_eq(m.data_as_of_us, 1700000000123456);
    ck_assert_uint_eq(m.n_columns, 2);
    ck_assert_str_eq(m.columns[0].stored, "BIGINT");
    ck_assert_str_eq(m.columns[1].name, "ü \"x\"");
    ck_assert_uint_eq(m.n_files, 2);
    ck_assert_str_eq(m.files[1].name, "data-1.parquet");
    ck_assert_uint_eq(m.files[1].bytes, 25);
    ck_assert_int_ne(access(path_of(ID_1, "manifest.json.tmp"), F_OK), 0);
}
END_TEST

START_TEST(without_its_manifest_it_is_none)
{
    const struct generation_ref r = ref_of(ID_1);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_eq(generation_begin(&r, 1, &e), 0);
    write_file(path_of(ID_1, "data-0.parquet"), "x");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    write_file(path_of(ID_1, "manifest.json.tmp"), "{");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
}
END_TEST

START_TEST(nothing_is_published_without_data)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m = manifest_of(1);
    ck_assert_int_eq(generation_begin(&r, 1, &e), 0);
    ck_assert_int_eq(generation_publish(&arena, &r, &m, &e), ERR_GENERATION);
    ck_assert_int_ne(access(path_of(ID_1, "manifest.json"), F_OK), 0);
}
END_TEST

START_TEST(a_manifest_cut_off_anywhere_is_damaged)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "manifest.json");
    const char *whole = read_file(path);
    size_t len = strlen(whole);
    for (size_t n = 0; n < len; n++) {
        write_file(path, arena_strndup(&arena, whole, n));
        ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    }
    write_file(path, whole);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), 0);
}
END_TEST

START_TEST(a_manifest_changed_anywhere_is_damaged)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "manifest.json");
    const char *whole = read_file(path);
    for (size_t i = 0; i < strlen(whole); i++) {
        char *changed = arena_strdup(&arena, whole);
        changed[i] = changed[i] == '7' ? '8' : '7';
        write_file(path, changed);
        ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
        ck_assert_ptr_nonnull(strstr(e.text, ID_1));
    }
}
END_TEST

/* Until the file system's clock tells it from the manifest. */
static void write_later(const char *id, const char *text)
{
    struct stat data, manifest;
    ck_assert_int_eq(stat(path_of(id, "manifest.json"), &manifest), 0);
    do {
        write_file(path_of(id, "data-0.parquet"), text);
        ck_assert_int_eq(stat(path_of(id, "data-0.parquet"), &data), 0);
    } while (data.st_ctim.tv_sec == manifest.st_ctim.tv_sec &&
             data.st_ctim.tv_nsec == manifest.st_ctim.tv_nsec);
}

START_TEST(a_file_of_the_same_size_in_the_place_of_another_is_noticed_whatever_its_date)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "data-0.parquet");
    const char *whole = read_file(path);
    struct stat was;
    ck_assert_int_eq(stat(path, &was), 0);
    char *changed = arena_strdup(&arena, whole);
    changed[0] ^= 1;
    write_later(ID_1, changed);
    const struct timespec times[2] = {was.st_atim, was.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "its hash is another"));

    write_later(ID_1, whole); /* restored from a copy: later, and the same */
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), 0);
}
END_TEST

START_TEST(a_directory_edited_by_hand_is_noticed)
{
    make(ID_1, 1);
    write_file(path_of(ID_1, "notes.txt"), "harmless");
    ck_assert_int_eq(look(ID_1, GENERATION_HASHES), 0);
    write_file(path_of(ID_1, "data-2.parquet"), "more");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "changed by hand"));
    ck_assert_int_eq(unlink(path_of(ID_1, "data-2.parquet")), 0);

    write_later(ID_1, "same size");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "its hash is another"));
    ck_assert_int_eq(look(ID_1, GENERATION_HASHES), ERR_GENERATION);
    write_file(path_of(ID_1, "data-0.parquet"), "shorter");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_int_eq(unlink(path_of(ID_1, "data-0.parquet")), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_eq(symlink("/etc/hostname", path_of(ID_1, "data-0.parquet")), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
}
END_TEST

START_TEST(a_directory_that_was_copied_is_not_the_generation_it_says)
{
    make(ID_1, 1);
    ck_assert_int_eq(rename(path_of(ID_1, ""), path_of(ID_2, "")), 0);
    ck_assert_int_eq(look(ID_2, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "moved or copied"));
}
END_TEST

START_TEST(names_that_lead_elsewhere_are_refused)
{
    static const char *const datasets[] = {"", ".", "..", "a/b", "../x", ".hidden", "a b", "ü"};
    struct generation_names names;
    for (size_t i = 0; i < ARRAY_LEN(datasets); i++) {
        const struct generation_ref r = {root, datasets[i], ID_1};
        ck_assert_int_eq(generation_begin(&r, 1, &e), ERR_PATH);
        ck_assert_int_eq(generation_drop(&r, &e), ERR_PATH);
        ck_assert_int_eq(generation_list(&arena, root, datasets[i], &names, &e), ERR_PATH);
    }
    static const char *const ids[] = {"",
                                      "..",
                                      "01hf7yat00aaaaaaaaaaaaaaaa",
                                      "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
                                      "01HF7YAT00AAAAAAAAAAAAAAAAA",
                                      "01HF7YAT00AAAAAAAAAAAAAAA/"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct generation_ref r = ref_of(ids[i]);
        ck_assert_int_eq(generation_begin(&r, 1, &e), ERR_PATH);
    }
}
END_TEST

START_TEST(a_build_begins_in_an_empty_directory)
{
    make(ID_1, 1);
    const struct generation_ref r = ref_of(ID_1);
    ck_assert_int_eq(generation_begin(&r, 2, &e), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_ne(access(path_of(ID_1, "data-0.parquet"), F_OK), 0);
    ck_assert_str_eq(read_file(path_of(ID_1, ".attempt")), "2");
}
END_TEST

START_TEST(a_drop_takes_all_of_it_once)
{
    const struct generation_ref r = ref_of(ID_1);
    make(ID_1, 1);
    write_file(path_of(ID_1, "notes.txt"), "x");
    ck_assert_int_eq(generation_drop(&r, &e), 1);
    ck_assert(!is_there(ID_1));
    ck_assert_int_eq(generation_drop(&r, &e), 0);
}
END_TEST

START_TEST(attempts_are_discarded_by_their_tokens)
{
    make(ID_1, 41);
    make(ID_2, 42);
    const uint64_t tokens[] = {7, 41};
    ck_assert_int_eq(generation_discard(root, "sales", tokens, 2, &e), 1);
    ck_assert(!is_there(ID_1) && is_there(ID_2));
    ck_assert_int_eq(generation_discard(root, "nothing", tokens, 2, &e), 0);
}
END_TEST

START_TEST(lists_name_generations_and_datasets_and_nothing_else)
{
    struct generation_names names;
    ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
    ck_assert_uint_eq(names.n, 0);
    make(ID_2, 1);
    make(ID_1, 2);
    write_file(arena_printf(&arena, "%s/sales/readme", root), "x");
    write_file(arena_printf(&arena, "%s/.kiln-root", root), "x");
    ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
    ck_assert_uint_eq(names.n, 2);
    ck_assert_str_eq(names.items[0], ID_1);
    ck_assert_str_eq(names.items[1], ID_2);
    ck_assert_int_eq(generation_datasets(&arena, root, &names, &e), 0);
    ck_assert_uint_eq(names.n, 1);
    ck_assert_str_eq(names.items[0], "sales");
}
END_TEST

/* ---- sweep ---- */

START_TEST(a_sweep_goes_by_the_record_and_not_by_what_a_directory_holds)
{
    const int64_t now = 1700000100 * S;
    const char *const ids[] = {ID_1};
    const struct generation_record record = {ids, 1, now};
    const struct generation_ref unfinished = ref_of(ID_1);
    make(ID_2, 2);                                             /* whole, and nobody's */
    ck_assert_int_eq(generation_begin(&unfinished, 1, &e), 0); /* no manifest: it is being built */
    ck_assert_int_eq(mkdir(arena_printf(&arena, "%s/sales/mine", root), 0700), 0);

    ck_assert_int_eq(generation_sweep(root, "sales", &record, &e), 1);

    ck_assert(is_there(ID_1) && !is_there(ID_2) && is_there("mine"));
    ck_assert_int_eq(generation_sweep(root, "nothing", &record, &e), 0);
}
END_TEST

START_TEST(a_sweep_leaves_what_is_younger_than_it_may_know)
{
    const int64_t made = generation_id_time_us(ID_1);
    const struct generation_record in_an_hour = {NULL, 0, made};
    make(ID_1, 1);
    ck_assert_int_gt(made, 1699000000 * S);
    ck_assert_int_eq(generation_sweep(root, "sales", &in_an_hour, &e), 0);
    ck_assert(is_there(ID_1));
    const struct generation_record at_boot = {NULL, 0, made + 1};
    ck_assert_int_eq(generation_sweep(root, "sales", &at_boot, &e), 1);
}
END_TEST

START_TEST(a_sweep_takes_an_empty_dataset_and_the_next_build_makes_it_again)
{
    const struct generation_record nothing = {NULL, 0, INT64_MAX};
    const struct generation_ref r = ref_of(ID_2);
    const char *dataset = arena_printf(&arena, "%s/sales", root);
    make(ID_1, 1);
    ck_assert_int_eq(generation_sweep(root, "sales", &nothing, &e), 1);
    ck_assert_int_ne(access(dataset, F_OK), 0);
    ck_assert_int_eq(generation_begin(&r, 2, &e), 0);
    ck_assert(is_there(ID_2));
    const struct generation_record own = {(const char *const[]){ID_2}, 1, INT64_MAX};
    ck_assert_int_eq(generation_sweep(root, "sales", &own, &e), 0);
    ck_assert(is_there(ID_2));
}
END_TEST

/* ---- kill -9 ---- */

/* Makes one generation after the other until it is killed. */
NORETURN static void make_for_ever(void)
{
    static char text[200000];
    memset(text, 'x', sizeof text - 1);
    for (uint64_t ms = 1700000000000;; ms++) {
        char id[ULID_TEXT];
        ulid_format(ms, (const uint8_t *)"0123456789", id);
        const struct generation_ref r = ref_of(id);
        struct generation_manifest m = manifest_of(ms);
        if (generation_begin(&r, ms, &e) < 0) {
            _exit(1);
        }
        write_file(path_of(id, "data-0.parquet"), text);
        if (generation_publish(&arena, &r, &m, &e) < 0) {
            _exit(2);
        }
    }
}

START_TEST(after_a_kill_what_has_a_manifest_is_whole_and_the_rest_is_swept)
{
    size_t whole = 0;
    for (int round = 0; round < 30; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            make_for_ever();
        }
        /* At another moment each time: when so many are there. */
        struct generation_names names = {0};
        for (int i = 0; i < 1000000 && names.n <= (size_t)round % 5; i++) {
            ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        }
        int status;
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));

        ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        size_t unfinished = 0;
        for (size_t i = 0; i < names.n; i++) {
            int rc = look(names.items[i], GENERATION_HASHES);
            ck_assert_msg(rc == 0 || rc == ERR_NOT_FOUND, "%s", e.text);
            whole += rc == 0;
            unfinished += rc != 0;
        }
        ck_assert_uint_le(unfinished, 1);
        const struct generation_record nothing = {NULL, 0, INT64_MAX};
        ck_assert_int_eq(generation_sweep(root, "sales", &nothing, &e), (int)names.n);
        ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        ck_assert_uint_eq(names.n, 0);
    }
    ck_assert_uint_gt(whole, 0);
}
END_TEST

/* ---- disk full ---- */

/* In a child, since limits and mounts are a process's own. 0: passed, 77: cannot be tried here. */
static int in_child(int (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(body());
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int publish_without_room(void)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m = manifest_of(1);
    static struct generation_column wide[2000];
    for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
        wide[i] = (struct generation_column){"a name of some length", "BIGINT", "BIGINT"};
    }
    m.columns = wide;
    m.n_columns = ARRAY_LEN(wide); /* the manifest needs more than is left */
    int rc = generation_publish(&arena, &r, &m, &e);
    if (rc != ERR_IO || !strstr(e.text, "manifest.json")) {
        fprintf(stderr, "%d: %s\n", rc, e.text);
        return 1;
    }
    if (access(path_of(ID_1, "manifest.json"), F_OK) == 0 ||
        access(path_of(ID_1, "manifest.json.tmp"), F_OK) == 0) {
        return 2;
    }
    return generation_drop(&r, &e) == 1 ? 0 : 3;
}

static int begin_and_fill(size_t bytes)
{
    const struct generation_ref r = ref_of(ID_1);
    if (generation_begin(&r, 1, &e) < 0) {
        return -1;
    }
    FILE *f = fopen(path_of(ID_1, "data-0.parquet"), "w");
    for (size_t i = 0; f && i < bytes; i++) {
        if (fputc('x', f) < 0) {
            break;
        }
    }
    return f && fclose(f) == 0 ? 0 : -1;
}

static int on_a_small_disk(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", root, "tmpfs", 0, "size=128k") < 0) {
        return 77;
    }
    return begin_and_fill(96 << 10) < 0 ? 4 : publish_without_room();
}

static int under_a_file_limit(void)
{
    struct rlimit limit = {16384, 16384};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (begin_and_fill(100) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0) {
        return 77;
    }
    return publish_without_room();
}

START_TEST(a_full_disk_publishes_nothing_and_says_so)
{
    int rc = in_child(on_a_small_disk);
    ck_assert_msg(rc == 0 || rc == 77, "on a small tmpfs: %d", rc);
    rc = in_child(under_a_file_limit);
    ck_assert_msg(rc == 0, "under a limit of file size: %d", rc);
}
END_TEST

/* ---- owner ---- */

START_TEST(a_root_is_taken_and_renewed_and_keeps_its_id)
{
    struct generation_owner first;
    struct generation_owner again;
    struct generation_owner seen;
    ck_assert_int_eq(generation_root_read(root, &seen, &e), ERR_NOT_FOUND);
    ck_assert_msg(generation_root_claim(root, &us, 1000 * S, &first, &e) == 0, "%s", e.text);
    ck_assert_int_eq(generation_root_claim(root, &us, 1060 * S, &again, &e), 0);
    ck_assert(uuid_eq(&first.root_id, &again.root_id));
    ck_assert_int_eq(generation_root_read(root, &seen, &e), 0);
    ck_assert(uuid_eq(&seen.root_id, &first.root_id) && uuid_eq(&seen.installation, &us));
    ck_assert_int_eq(seen.renewed_us, 1060 * S);
}
END_TEST

START_TEST(a_root_is_the_one_that_a_result_stands_in_or_it_is_said_why_not)
{
    const struct uuid any = {{0}}, other = {{7}};
    struct generation_owner o;
    ck_assert_int_eq(generation_root_is(root, &us, &any, &e), ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "is not reachable"));
    ck_assert_int_eq(generation_root_claim(root, &us, 1000 * S, &o, &e), 0);
    ck_assert_int_eq(generation_root_is(root, &us, &any, &e), 0);
    ck_assert_int_eq(generation_root_is(root, &us, &o.root_id, &e), 0);
    ck_assert_int_eq(generation_root_is(root, &us, &other, &e), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "share one directory"));
    ck_assert_int_eq(generation_root_is(root, &them, &o.root_id, &e), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "another installation"));
}
END_TEST

START_TEST(another_installation_is_refused_while_the_root_is_renewed)
{
    struct generation_owner o;
    ck_assert_int_eq(generation_root_claim(root, &us, 1000 * S, &o, &e), 0);
    const struct uuid id = o.root_id;
    ck_assert_int_eq(generation_root_claim(root, &them, 1179 * S, &o, &e), ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(e.text, "seen 179 s ago"));
    ck_assert_ptr_nonnull(strstr(e.text, "directory of its own"));
    ck_assert_int_eq(generation_root_claim(root, &us, 1170 * S, &o, &e), 0);
    ck_assert_int_eq(generation_root_claim(root, &them, 1300 * S, &o, &e), ERR_CONFLICT);

    ck_assert_int_eq(generation_root_claim(root, &them, 1351 * S, &o, &e), 0);
    ck_assert(uuid_eq(&o.root_id, &id));
    ck_assert_int_eq(generation_root_claim(root, &us, 1352 * S, &o, &e), ERR_CONFLICT);
}
END_TEST

START_TEST(of_two_that_start_at_once_one_has_the_root)
{
    int ends[2];
    pid_t pids[2];
    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char go;
            struct generation_owner o;
            (void)close(ends[1]);
            (void)!read(ends[0], &go, 1); /* until both are there */
            int rc = generation_root_claim(root, i ? &us : &them, 1000 * S, &o, &e);
            _exit(rc == 0 ? 0 : rc == ERR_CONFLICT ? 1 : 2);
        }
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    int sum = 0;
    for (int i = 0; i < 2; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        sum += WEXITSTATUS(status);
    }
    ck_assert_int_eq(sum, 1);
}
END_TEST

START_TEST(a_root_that_is_not_there_or_not_understood_is_named)
{
    struct generation_owner o;
    const char *gone = arena_printf(&arena, "%s/gone", root);
    ck_assert_int_eq(generation_root_claim(gone, &us, S, &o, &e), ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, gone));
    write_file(arena_printf(&arena, "%s/.kiln-root", root), "{}");
    ck_assert_int_eq(generation_root_claim(root, &us, S, &o, &e), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "remove it"));
}
END_TEST

/* ---- the pure parts ---- */

START_TEST(a_manifest_that_lacks_something_is_damaged)
{
    struct generation_manifest good = manifest_of(1);
    static struct generation_file files[] = {{.name = "data-0.parquet", .bytes = 1}};
    good.dataset = "sales";
    good.id = ID_1;
    good.files = files;
    good.n_files = 1;
    struct generation_manifest broken[6];
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        broken[i] = good;
    }
    static struct generation_column untyped[] = {{"n", "", "BIGINT"}};
    static struct generation_file elsewhere[] = {{.name = "../data-0.parquet", .bytes = 1}};
    broken[0].dataset = "..";
    broken[1].id = "x";
    broken[2].n_columns = 0;
    broken[3].n_files = 0;
    broken[4].columns = untyped;
    broken[4].n_columns = 1;
    broken[5].files = elsewhere;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        auto_buf struct buf text = {0};
        struct generation_manifest m;
        generation_manifest_print(&broken[i], &text);
        ck_assert_int_eq(generation_manifest_parse(&arena, buf_slice(&text), &m, &e),
                         ERR_GENERATION);
    }
    auto_buf struct buf text = {0};
    struct generation_manifest m;
    generation_manifest_print(&good, &text);
    ck_assert_int_eq(generation_manifest_parse(&arena, buf_slice(&text), &m, &e), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("generation");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_published_is_read_back);
    tcase_add_test(tc, without_its_manifest_it_is_none);
    tcase_add_test(tc, nothing_is_published_without_data);
    tcase_add_test(tc, a_manifest_cut_off_anywhere_is_damaged);
    tcase_add_test(tc, a_manifest_changed_anywhere_is_damaged);
    tcase_add_test(tc,
                   a_file_of_the_same_size_in_the_place_of_another_is_noticed_whatever_its_date);
    tcase_add_test(tc, a_directory_edited_by_hand_is_noticed);
    tcase_add_test(tc, a_directory_that_was_copied_is_not_the_generation_it_says);
    tcase_add_test(tc, names_that_lead_elsewhere_are_refused);
    tcase_add_test(tc, a_build_begins_in_an_empty_directory);
    tcase_add_test(tc, a_drop_takes_all_of_it_once);
    tcase_add_test(tc, attempts_are_discarded_by_their_tokens);
    tcase_add_test(tc, lists_name_generations_and_datasets_and_nothing_else);
    tcase_add_test(tc, a_sweep_goes_by_the_record_and_not_by_what_a_directory_holds);
    tcase_add_test(tc, a_sweep_leaves_what_is_younger_than_it_may_know);
    tcase_add_test(tc, a_sweep_takes_an_empty_dataset_and_the_next_build_makes_it_again);
    tcase_add_test(tc, after_a_kill_what_has_a_manifest_is_whole_and_the_rest_is_swept);
    tcase_add_test(tc, a_full_disk_publishes_nothing_and_says_so);
    tcase_add_test(tc, a_root_is_taken_and_renewed_and_keeps_its_id);
    tcase_add_test(tc, a_root_is_the_one_that_a_result_stands_in_or_it_is_said_why_not);
    tcase_add_test(tc, another_installation_is_refused_while_the_root_is_renewed);
    tcase_add_test(tc, of_two_that_start_at_once_one_has_the_root);
    tcase_add_test(tc, a_root_that_is_not_there_or_not_understood_is_named);
    tcase_add_test(tc, a_manifest_that_lacks_something_is_damaged);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
