#include "common/conf/conf.h"

#include "common/conf/conf_internal.h"

#include <stdarg.h>

void conf_complain(struct conf_run *r, const char *place, const char *fmt, ...)
{
    auto_buf struct buf line = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&line, fmt, ap);
    va_end(ap);
    fprintf(r->errors, "%s: %s%s\n", r->spec->program, place, buf_str(&line));
    r->n_errors++;
}

static void apply_defaults(struct conf_run *r)
{
    for (size_t i = 0; i < r->spec->n; i++) {
        if (r->spec->items[i].def) {
            conf_value_apply(r, i,
                             &(struct conf_found){.place = "built-in default: ",
                                                  .source = "default",
                                                  .text = r->spec->items[i].def});
        }
    }
}

/* An empty variable counts as absent: that is how compose files pass on what was not given. */
static const char *env_value(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && value[0] ? value : NULL;
}

static void apply_environment(struct conf_run *r)
{
    for (size_t i = 0; i < r->spec->n; i++) {
        const char *name = r->spec->items[i].env;
        const char *value = env_value(name);
        if (value) {
            conf_value_apply(r, i,
                             &(struct conf_found){
                                 .place = arena_printf(r->arena, "environment variable %s: ", name),
                                 .source = arena_printf(r->arena, "environment variable %s", name),
                                 .text = value});
        }
    }
}

static void apply_flags(struct conf_run *r, const char *const *flags)
{
    for (size_t i = 0; i < r->spec->n; i++) {
        const char *name = r->spec->items[i].flag;
        if (flags[i]) {
            conf_value_apply(
                r, i,
                &(struct conf_found){.place = arena_printf(r->arena, "flag %s: ", name),
                                     .source = arena_printf(r->arena, "flag %s", name),
                                     .text = flags[i]});
        }
    }
}

static void check_required(struct conf_run *r)
{
    for (size_t i = 0; i < r->spec->n; i++) {
        const struct conf_item *item = &r->spec->items[i];
        if (!(item->flags & CONF_REQUIRED) || r->sources[i]) {
            continue;
        }
        auto_buf struct buf ways = {0};
        buf_addf(&ways, "set it in the file%s%s", r->file ? " " : "", r->file ? r->file : "");
        if (item->env) {
            buf_addf(&ways, ", with the environment variable %s", item->env);
        }
        if (item->flag) {
            buf_addf(&ways, ", or with the flag %s", item->flag);
        }
        conf_complain(r, "", "%s is required and not set (%s): %s", item->key,
                      item->doc ? item->doc : "", buf_str(&ways));
    }
}

enum conf_action conf_load(const struct conf_spec *spec, struct arena *a, void *settings, int argc,
                           char **argv, char ***rest, FILE *out, FILE *errors)
{
    struct conf_run r = {.spec = spec, .arena = a, .settings = settings, .errors = errors};
    r.sources = arena_zalloc(a, (spec->n + 1) * sizeof *r.sources);
    const char **flags = arena_zalloc(a, (spec->n + 1) * sizeof *flags);
    enum conf_action ended = conf_args_read(&r, argc, argv, rest, flags, out);
    if (ended != CONF_RUN) {
        return ended;
    }
    if (!r.file) {
        r.file = env_value("KILN_CONFIG");
    }
    apply_defaults(&r);
    if (r.file) {
        conf_file_read(&r);
    }
    apply_environment(&r);
    apply_flags(&r, flags);
    if (r.n_errors == 0) {
        check_required(&r);
    }
    if (r.n_errors) {
        return CONF_EXIT_BAD;
    }
    if (r.print) {
        conf_print_settings(&r, out);
    } else if (r.check) {
        fprintf(out, "%s: the configuration is valid\n", spec->program);
    }
    return r.print || r.check ? CONF_EXIT_OK : CONF_RUN;
}
