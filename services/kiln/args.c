#include "services/kiln/args.h"

struct reader {
    const struct arg_spec *spec;
    struct arena *arena;
    char *options;
    int argc, at;
    char **argv;
    FILE *errors;
};

static void print_help(const struct arg_spec *s, FILE *out)
{
    (void)fprintf(out, "kiln %s%s%s [options]\n%s\n\n", s->verb, s->words[0] ? " " : "", s->words,
                  s->summary);
    for (size_t i = 0; i < s->n; i++) {
        const struct arg_option *o = &s->options[i];
        char left[64];
        (void)snprintf(left, sizeof(left), "%s%s%s", o->name, o->value ? " " : "",
                       o->value ? o->value : "");
        (void)fprintf(out, "  %-24s %s\n", left, o->doc);
    }
    (void)fprintf(out, "  %-24s %s\n", "--help", "print this");
    if (s->more) {
        (void)fprintf(out, "\n%s\n", s->more);
    }
}

static enum arg_action complain(const struct reader *r, const char *word, const char *what)
{
    (void)fprintf(r->errors, "kiln %s: %s %s; kiln %s --help says what there is\n", r->spec->verb,
                  word, what, r->spec->verb);
    return ARG_EXIT_USAGE;
}

static void list_add(struct arena *a, struct arg_list *list, const char *item)
{
    const char **more = arena_alloc(a, (list->n + 1) * sizeof(*more));
    if (list->n) {
        memcpy(more, list->items, list->n * sizeof(*more));
    }
    more[list->n] = item;
    list->items = more;
    list->n++;
}

/* "120", "1.5", "90s", "2min", "1h" as milliseconds; -1 when it is none. */
static int64_t parse_span(const char *text)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"min", 60000}, {"m", 60000}, {"h", 3600000}};
    char *end = NULL;
    double n = strtod(text, &end);
    if (end == text || !(n >= 0 && n < 1e9)) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(end, units[i].name) == 0) {
            return (int64_t)(n * units[i].ms);
        }
    }
    return -1;
}

static enum arg_action store(struct reader *r, const struct arg_option *o, const char *value)
{
    void *member = r->options + o->offset;
    int64_t span;
    switch (o->kind) {
    case ARG_FLAG:
        *(bool *)member = true;
        return ARG_RUN;
    case ARG_TEXT:
        *(const char **)member = value;
        return ARG_RUN;
    case ARG_LIST:
        list_add(r->arena, member, value);
        return ARG_RUN;
    case ARG_SECONDS:
    default:
        span = parse_span(value);
        if (span < 0) {
            return complain(r, o->name, "takes seconds, or a span such as 90s, 5min or 1h");
        }
        *(int64_t *)member = span;
        return ARG_RUN;
    }
}

static const struct arg_option *find(const struct arg_spec *s, struct slice name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (slice_is(name, s->options[i].name)) {
            return &s->options[i];
        }
    }
    return NULL;
}

static enum arg_action read_option(struct reader *r, const char *word)
{
    const char *eq = strchr(word, '=');
    struct slice name = eq ? slice_make(word, (size_t)(eq - word)) : slice_of(word);
    const char *shown = arena_slice(r->arena, name);
    const struct arg_option *o = find(r->spec, name);
    if (!o) {
        return complain(r, shown, "is no option");
    }
    if (o->kind == ARG_FLAG) {
        return eq ? complain(r, shown, "takes no value") : store(r, o, NULL);
    }
    if (eq) {
        return store(r, o, eq + 1);
    }
    if (r->at + 1 >= r->argc) {
        return complain(r, shown, "has no value");
    }
    return store(r, o, r->argv[++r->at]);
}

static enum arg_action check_words(const struct reader *r, const struct arg_list *words)
{
    if (words->n > r->spec->max_words) {
        return complain(r, words->items[r->spec->max_words], "is one word too many");
    }
    if (words->n < r->spec->min_words) {
        (void)fprintf(r->errors, "kiln %s: words are missing: kiln %s %s\n", r->spec->verb,
                      r->spec->verb, r->spec->words);
        return ARG_EXIT_USAGE;
    }
    return ARG_RUN;
}

enum arg_action args_read(const struct arg_spec *spec, struct arena *a, void *options, int argc,
                          char **argv, struct arg_list *words, FILE *out, FILE *errors)
{
    struct reader r = {
        .spec = spec, .arena = a, .options = options, .argc = argc, .argv = argv, .errors = errors};
    bool only_words = false;
    *words = (struct arg_list){NULL, 0};
    for (r.at = 1; r.at < argc; r.at++) {
        const char *word = argv[r.at];
        if (only_words || word[0] != '-' || !word[1]) {
            list_add(a, words, word);
        } else if (strcmp(word, "--") == 0) {
            only_words = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(spec, out);
            return ARG_EXIT_OK;
        } else if (read_option(&r, word) != ARG_RUN) {
            return ARG_EXIT_USAGE;
        }
    }
    return check_words(&r, words);
}
