#include "common/toml/toml.h"

#include "common/toml/toml_internal.h"

/* toml_shim.cpp knows the kinds by number only. */
_Static_assert(TOML_TABLE == 0 && TOML_ARRAY == 1 && TOML_STRING == 2 && TOML_INT == 3 &&
                   TOML_FLOAT == 4 && TOML_BOOL == 5 && TOML_OTHER == 6,
               "enum kind in toml_shim.cpp must follow enum toml_kind");

struct collector {
    struct arena *arena;
    struct toml_doc *doc;
    size_t cap;
    const struct toml_item *with_nul; /* first string that holds a NUL */
};

static void collect(void *arg, const struct toml_node *node)
{
    struct collector *c = arg;
    struct toml_doc *doc = c->doc;
    if (doc->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 32;
        struct toml_item *grown = arena_alloc(c->arena, c->cap * sizeof *grown);
        if (doc->n) {
            memcpy(grown, doc->items, doc->n * sizeof *grown);
        }
        doc->items = grown;
    }
    struct toml_item *item = &doc->items[doc->n++];
    *item = (struct toml_item){
        .path = arena_strdup(c->arena, node->path),
        .kind = (enum toml_kind)node->kind,
        .text = arena_slice(c->arena, slice_make(node->text, node->len)),
        .i = node->i,
        .d = node->d,
        .line = node->line,
        .column = node->column,
    };
    if (!c->with_nul && strlen(item->text) != node->len) {
        c->with_nul = arena_dup(c->arena, item, sizeof *item);
    }
}

int toml_parse(struct arena *a, struct slice text, struct toml_doc *doc, struct err *e)
{
    *doc = (struct toml_doc){0};
    struct toml_error why = {0};
    struct collector c = {.arena = a, .doc = doc};
    if (toml_visit(text.p, text.len, &why, collect, &c) < 0) {
        return err_set(e, ERR_CONF_SYNTAX, "line %d, column %d: %s", why.line, why.column,
                       why.text);
    }
    if (c.with_nul) {
        return err_set(e, ERR_CONF_SYNTAX, "line %d, column %d: %s holds a NUL character",
                       c.with_nul->line, c.with_nul->column, c.with_nul->path);
    }
    return 0;
}

const struct toml_item *toml_find(const struct toml_doc *doc, const char *path)
{
    for (size_t i = 0; i < doc->n; i++) {
        if (strcmp(doc->items[i].path, path) == 0) {
            return &doc->items[i];
        }
    }
    return NULL;
}
