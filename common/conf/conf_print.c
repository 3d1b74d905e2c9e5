/* Values and tables as people read them: --help, --print-config, Markdown. */
#include "common/conf/conf_internal.h"

static void add_ms(struct buf *out, int64_t v)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[] = {{"h", 3600000}, {"min", 60000}, {"s", 1000}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (v != 0 && v % units[i].factor == 0) {
            buf_addf(out, "%lld%s", (long long)(v / units[i].factor), units[i].name);
            return;
        }
    }
    buf_addf(out, "%lldms", (long long)v);
}

static void add_bytes(struct buf *out, int64_t v)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (v != 0 && v % 1024 == 0 && unit + 1 < ARRAY_LEN(names)) {
        v /= 1024;
        unit++;
    }
    buf_addf(out, "%lld%s", (long long)v, names[unit]);
}

static void add_number(struct buf *out, enum conf_type type, int64_t v)
{
    if (type == CONF_MS) {
        add_ms(out, v);
    } else if (type == CONF_BYTES) {
        add_bytes(out, v);
    } else {
        buf_addf(out, "%lld", (long long)v);
    }
}

static void add_range(const struct conf_item *item, struct buf *out)
{
    int64_t min, max;
    conf_value_range(item, &min, &max);
    if (item->min == 0 && item->max == 0) {
        return;
    }
    if (max == INT64_MAX) {
        buf_add_str(out, " of at least ");
        add_number(out, item->type, min);
        return;
    }
    buf_add_str(out, " from ");
    add_number(out, item->type, min);
    buf_add_str(out, " to ");
    add_number(out, item->type, max);
}

static void add_words(const char *words, struct buf *out)
{
    buf_add_str(out, "one of");
    struct slice rest = slice_of(words);
    struct slice word;
    const char *before = " ";
    while (slice_cut(&rest, '|', &word)) {
        buf_addf(out, "%s%.*s", before, SLICE_FMT(word));
        before = ", ";
    }
}

void conf_value_allowed(const struct conf_item *item, struct buf *out)
{
    switch (item->type) {
    case CONF_STR:
        buf_add_str(out, "a string");
        return;
    case CONF_BOOL:
        buf_add_str(out, "true or false (outside the file also 1, yes, on, 0, no, off)");
        return;
    case CONF_ENUM:
        add_words(item->words, out);
        return;
    case CONF_INT:
        buf_add_str(out, "a whole number");
        break;
    case CONF_MS:
        buf_add_str(out, "a duration such as 250ms, 10s, 5min or 1h");
        break;
    case CONF_BYTES:
        buf_add_str(out, "a size such as 64MiB or 64MB");
        break;
    }
    add_range(item, out);
}

static void add_toml_string(struct buf *out, const char *text)
{
    buf_add_char(out, '"');
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f) {
            buf_addf(out, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\') {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, *p);
    }
    buf_add_char(out, '"');
}

void conf_value_print(const struct conf_run *r, size_t item, struct buf *out)
{
    const struct conf_item *it = &r->spec->items[item];
    const void *at = r->settings + it->offset;
    if (it->flags & CONF_SECRET) {
        buf_add_str(out, "\"***\"");
        return;
    }
    if (it->type == CONF_STR || it->type == CONF_ENUM) {
        const char *text;
        memcpy(&text, at, sizeof text);
        add_toml_string(out, text ? text : "");
        return;
    }
    if (it->type == CONF_BOOL) {
        bool flag;
        memcpy(&flag, at, sizeof flag);
        buf_add_str(out, flag ? "true" : "false");
        return;
    }
    int64_t number;
    memcpy(&number, at, sizeof number);
    const char *quote = it->type == CONF_INT ? "" : "\"";
    buf_add_str(out, quote);
    add_number(out, it->type, number);
    buf_add_str(out, quote);
}

void conf_print_settings(const struct conf_run *r, FILE *out)
{
    for (size_t i = 0; i < r->spec->n; i++) {
        const char *key = r->spec->items[i].key;
        if (!r->sources[i]) {
            fprintf(out, "# %s is not set\n", key);
            continue;
        }
        auto_buf struct buf value = {0};
        conf_value_print(r, i, &value);
        fprintf(out, "%s = %s # %s\n", key, buf_str(&value), r->sources[i]);
    }
}

static void help_item(const struct conf_item *item, FILE *out)
{
    auto_buf struct buf head = {0};
    buf_addf(&head, "  %s%s", item->flag ? item->flag : item->key,
             !item->flag || item->type == CONF_BOOL ? "" : " VALUE");
    fprintf(out, "%s\n      %s\n", buf_str(&head), item->doc ? item->doc : "");
    auto_buf struct buf allowed = {0};
    conf_value_allowed(item, &allowed);
    fprintf(out, "      Takes %s.", buf_str(&allowed));
    if (item->flag) {
        fprintf(out, " In the file: %s.", item->key);
    }
    if (item->env) {
        fprintf(out, " Environment: %s.", item->env);
    }
    if (item->def && !(item->flags & CONF_SECRET)) {
        fprintf(out, " Default: %s.", item->def[0] ? item->def : "\"\"");
    }
    fprintf(out, "%s\n", item->flags & CONF_REQUIRED ? " Required." : "");
}

void conf_print_help(const struct conf_spec *spec, FILE *out)
{
    fprintf(out, "%s: %s\n\nUsage: %s [OPTION...]%s\n\n", spec->program, spec->summary,
            spec->program, spec->rest_allowed ? " [ARGUMENT...]" : "");
    fprintf(out,
            "  --config FILE\n      Reads settings from a TOML file. Environment: KILN_CONFIG.\n"
            "  --check\n      Checks all settings and ends.\n"
            "  --print-config\n      Prints every setting and where it comes from, and ends.\n"
            "  --version\n  --help\n\n"
            "A flag is stronger than the environment, which is stronger than the file.\n\n");
    for (size_t i = 0; i < spec->n; i++) {
        help_item(&spec->items[i], out);
    }
}

static void doc_cell(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        fprintf(out, *p == '|' ? "\\|" : "%c", *p);
    }
}

static void doc_code(FILE *out, const char *text)
{
    if (text) {
        fputs(" `", out);
        doc_cell(out, text);
        fputs("` |", out);
    } else {
        fputs(" - |", out);
    }
}

void conf_doc(const struct conf_spec *spec, FILE *out)
{
    fprintf(out, "## %s\n\n%s\n\n", spec->program, spec->summary);
    fputs("| key | default | takes | environment | flag | meaning |\n|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < spec->n; i++) {
        const struct conf_item *item = &spec->items[i];
        auto_buf struct buf allowed = {0};
        conf_value_allowed(item, &allowed);
        fputc('|', out);
        doc_code(out, item->key);
        doc_code(out, item->def && item->def[0] ? item->def : NULL);
        fputc(' ', out);
        doc_cell(out, buf_str(&allowed));
        fputs(" |", out);
        doc_code(out, item->env);
        doc_code(out, item->flag);
        fputc(' ', out);
        doc_cell(out, item->doc ? item->doc : "");
        fprintf(out, "%s%s |\n", item->flags & CONF_REQUIRED ? " Required." : "",
                item->flags & CONF_RELOAD ? " Read again on SIGHUP." : "");
    }
    fputc('\n', out);
}
