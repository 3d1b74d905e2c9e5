#include "tests/unit/conf_fixture.h"

#include <stdio.h>
#include <unistd.h>

#define AT(member) offsetof(struct settings, member)
static const struct conf_item items[] = {
    {.key = "gateway.host",
     .type = CONF_STR,
     .offset = AT(host),
     .def = "127.0.0.1",
     .env = "T_HOST",
     .flag = "--host",
     .doc = "Address to listen on."},
    {.key = "gateway.port",
     .type = CONF_INT,
     .offset = AT(port),
     .def = "4000",
     .min = 1,
     .max = 65535,
     .env = "T_PORT",
     .flag = "--port",
     .doc = "Port to listen on."},
    {.key = "gateway.wait",
     .type = CONF_MS,
     .offset = AT(wait),
     .def = "10s",
     .min = 1,
     .max = 3600000,
     .env = "T_WAIT",
     .flag = "--wait",
     .doc = "How long to wait."},
    {.key = "gateway.limit",
     .type = CONF_BYTES,
     .offset = AT(limit),
     .def = "64MiB",
     .env = "T_LIMIT",
     .flag = "--limit",
     .doc = "Largest answer."},
    {.key = "gateway.mode",
     .type = CONF_ENUM,
     .offset = AT(mode),
     .def = "auto",
     .words = "auto|text|json",
     .env = "T_MODE",
     .doc = "Form."},
    {.key = "gateway.verbose",
     .type = CONF_BOOL,
     .offset = AT(verbose),
     .def = "false",
     .env = "T_VERBOSE",
     .flag = "--verbose",
     .doc = "Says more."},
    {.key = "gateway.tls.on", .type = CONF_BOOL, .offset = AT(tls), .def = "off", .doc = "TLS."},
    {.key = "gateway.password",
     .type = CONF_STR,
     .offset = AT(password),
     .env = "T_PASSWORD",
     .flags = CONF_SECRET,
     .doc = "Password."},
    {.key = "store.name",
     .type = CONF_STR,
     .offset = AT(name),
     .env = "T_NAME",
     .flag = "--name",
     .flags = CONF_REQUIRED,
     .doc = "Name of the store."},
    {.key = "gateway.count",
     .type = CONF_INT,
     .offset = AT(count),
     .env = "T_COUNT",
     .doc = "Any number."},
};
struct conf_spec spec = {.program = "kiln-test",
                         .summary = "A test.",
                         .items = items,
                         .n = ARRAY_LEN(items),
                         .others = "store.pool|bus.calls"};

struct arena arena;
struct settings got;
char file_path[64];
char *out_text, *error_text;
char **rest;

void conf_setup(void)
{
    arena_init(&arena);
    snprintf(file_path, sizeof file_path, "/tmp/conf_test_%d.toml", (int)getpid());
    got = (struct settings){0};
    spec.rest_allowed = false;
    setenv("T_NAME", "n", 1);
}

void conf_teardown(void)
{
    static const char *const names[] = {"T_HOST",  "T_PORT",     "T_WAIT",     "T_LIMIT",
                                        "T_MODE",  "T_VERBOSE",  "T_PASSWORD", "T_NAME",
                                        "T_COUNT", "KILN_CONFIG"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unsetenv(names[i]);
    }
    unlink(file_path);
    free(out_text);
    free(error_text);
    out_text = error_text = NULL;
    arena_fini(&arena);
}

enum conf_action load(const char *args)
{
    char *argv[32] = {arena_strdup(&arena, "kiln-test")};
    int argc = 1;
    char *words = arena_strdup(&arena, args);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    free(out_text);
    free(error_text);
    size_t out_len, error_len;
    FILE *out = open_memstream(&out_text, &out_len);
    FILE *errors = open_memstream(&error_text, &error_len);
    enum conf_action action = conf_load(&spec, &arena, &got, argc, argv, &rest, out, errors);
    fclose(out);
    fclose(errors);
    return action;
}

enum conf_action load_file(const char *toml, const char *args)
{
    FILE *f = fopen(file_path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(toml, f);
    fclose(f);
    return load(arena_printf(&arena, "--config %s %s", file_path, args));
}

void says(const char *words)
{
    ck_assert_msg(strstr(error_text, words) != NULL, "no \"%s\" in: %s", words, error_text);
}
