/* The installation that owns a root. */
#include "tests/unit/generation_fixture.h"
#include "tests/unit/generation_suites.h"

#include <sys/wait.h>
#include <unistd.h>

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

TCase *generation_owner_tests(void)
{
    TCase *tc = tcase_create("owner");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, generation_setup, generation_teardown);
    tcase_add_test(tc, a_root_is_taken_and_renewed_and_keeps_its_id);
    tcase_add_test(tc, a_root_is_the_one_that_a_result_stands_in_or_it_is_said_why_not);
    tcase_add_test(tc, another_installation_is_refused_while_the_root_is_renewed);
    tcase_add_test(tc, of_two_that_start_at_once_one_has_the_root);
    tcase_add_test(tc, a_root_that_is_not_there_or_not_understood_is_named);
    return tc;
}
