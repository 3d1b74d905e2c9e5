/* The command line. */
#include "common/conf/conf_internal.h"

static const char *const own_flags[] = {"--config", "--check", "--print-config", "--help",
                                        "--version"};

struct args {
    struct conf_run *run;
    int argc;
    char **argv;
    int at;
    const char **flags;
    bool help, version;
};

static void unknown_flag(struct conf_run *r, const char *word)
{
    const struct conf_spec *spec = r->spec;
    const char **all = arena_alloc(r->arena, (spec->n + ARRAY_LEN(own_flags)) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(own_flags); i++) {
        all[n++] = own_flags[i];
    }
    for (size_t i = 0; i < spec->n; i++) {
        if (spec->items[i].flag) {
            all[n++] = spec->items[i].flag;
        }
    }
    const char *near = conf_near(word, all, n);
    if (near) {
        conf_complain(r, "", "unknown flag %s: did you mean %s?", word, near);
    } else {
        conf_complain(r, "", "unknown flag %s: run %s --help for the flags there are", word,
                      spec->program);
    }
}

/* The value of "--flag=value" or "--flag value"; NULL after complaining when there is none. */
static const char *take_value(struct args *a, const char *name, const char *inline_value)
{
    if (inline_value) {
        return inline_value;
    }
    if (a->at + 1 < a->argc && strncmp(a->argv[a->at + 1], "--", 2) != 0) {
        return a->argv[++a->at];
    }
    conf_complain(a->run, "", "flag %s has no value: write %s=VALUE", name, name);
    return NULL;
}

static bool own_switch(struct args *a, const char *name)
{
    bool *target = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ? &a->help
                   : strcmp(name, "--version") == 0                       ? &a->version
                   : strcmp(name, "--check") == 0                         ? &a->run->check
                   : strcmp(name, "--print-config") == 0                  ? &a->run->print
                                                                          : NULL;
    if (target) {
        *target = true;
    }
    return target != NULL;
}

static size_t item_of_flag(const struct conf_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n; i++) {
        if (spec->items[i].flag && strcmp(spec->items[i].flag, name) == 0) {
            return i;
        }
    }
    return spec->n;
}

static void read_flag(struct args *a, const char *word)
{
    struct conf_run *r = a->run;
    const char *eq = strchr(word, '=');
    const char *name = eq ? arena_strndup(r->arena, word, (size_t)(eq - word)) : word;
    const char *value = eq ? eq + 1 : NULL;
    size_t i = item_of_flag(r->spec, name);
    if (i < r->spec->n) {
        bool is_switch = r->spec->items[i].type == CONF_BOOL && !value;
        value = is_switch ? "true" : take_value(a, name, value);
        a->flags[i] = value ? value : a->flags[i];
    } else if (strcmp(name, "--config") == 0) {
        value = take_value(a, name, value);
        r->file = value ? value : r->file;
    } else if (value || !own_switch(a, name)) {
        unknown_flag(r, name);
    }
}

enum conf_action conf_args_read(struct conf_run *r, int argc, char **argv, char ***rest,
                                const char **flags, FILE *out)
{
    struct args a = {.run = r, .argc = argc, .argv = argv, .flags = flags};
    char **words = arena_zalloc(r->arena, ((size_t)(argc > 0 ? argc : 0) + 1) * sizeof *words);
    size_t n = 0;
    bool only_words = false;
    for (a.at = 1; a.at < argc; a.at++) {
        char *word = argv[a.at];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1]) {
            read_flag(&a, word);
        } else if (r->spec->rest_allowed) {
            words[n++] = word;
        } else {
            conf_complain(r, "", "unexpected argument \"%s\": %s takes flags only, see --help",
                          word, r->spec->program);
        }
    }
    if (rest) {
        *rest = words;
    }
    if (a.help) {
        conf_print_help(r->spec, out);
        return CONF_EXIT_OK;
    }
    if (a.version) {
        fprintf(out, "%s %s\n", r->spec->program, KILN_VERSION);
        return CONF_EXIT_OK;
    }
    return CONF_RUN;
}
