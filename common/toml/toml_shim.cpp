// The only C++ file: toml++ behind a C interface. Exceptions are off, so running out of memory ends
// the process as everywhere else.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "common/toml/toml_internal.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace
{
// The numbers of enum toml_kind in toml.h, which is C.
enum kind { KIND_TABLE, KIND_ARRAY, KIND_STRING, KIND_INT, KIND_FLOAT, KIND_BOOL, KIND_OTHER };

struct walker {
    toml_visit_fn fn;
    void *arg;

    void walk(const toml::node &node, const std::string &path) const;
    void walk_table(const toml::table &table, const std::string &path) const;
    void walk_array(const toml::array &array, const std::string &path) const;
};

std::string joined(const std::string &path, std::string_view key)
{
    std::string out = path.empty() ? "" : path + ".";
    bool plain = !key.empty() && key.find_first_of(".\"") == std::string_view::npos;
    return plain ? out.append(key) : out.append("\"").append(key).append("\"");
}

bool holds_tables(const toml::node &node)
{
    return node.is_table() || (node.is_array() && node.as_array()->is_array_of_tables());
}

bool stands_before(const toml::node *a, const toml::node *b)
{
    const auto &x = a->source().begin;
    const auto &y = b->source().begin;
    return x.line != y.line ? x.line < y.line : x.column < y.column;
}

toml_node described(const toml::node &node, const std::string &path, kind k)
{
    toml_node out = {};
    out.path = path.c_str();
    out.kind = k;
    out.text = "";
    out.line = static_cast<int>(node.source().begin.line);
    out.column = static_cast<int>(node.source().begin.column);
    return out;
}

void walker::walk(const toml::node &node, const std::string &path) const
{
    if (const auto *table = node.as_table()) {
        toml_node out = described(node, path, KIND_TABLE);
        fn(arg, &out);
        walk_table(*table, path);
    } else if (const auto *array = node.as_array()) {
        toml_node out = described(node, path, KIND_ARRAY);
        out.i = static_cast<int64_t>(array->size());
        fn(arg, &out);
        walk_array(*array, path);
    } else if (const auto *text = node.as_string()) {
        toml_node out = described(node, path, KIND_STRING);
        out.text = text->get().c_str();
        out.len = text->get().size();
        fn(arg, &out);
    } else if (const auto *number = node.as_integer()) {
        toml_node out = described(node, path, KIND_INT);
        out.i = number->get();
        fn(arg, &out);
    } else if (const auto *real = node.as_floating_point()) {
        toml_node out = described(node, path, KIND_FLOAT);
        out.d = real->get();
        fn(arg, &out);
    } else if (const auto *flag = node.as_boolean()) {
        toml_node out = described(node, path, KIND_BOOL);
        out.i = flag->get() ? 1 : 0;
        fn(arg, &out);
    } else {
        toml_node out = described(node, path, KIND_OTHER);
        fn(arg, &out);
    }
}

// toml++ keeps keys sorted. Values come in that order, tables after them in the order of the file.
void walker::walk_table(const toml::table &table, const std::string &path) const
{
    std::vector<std::pair<const toml::node *, std::string>> tables;
    for (const auto &[key, value] : table) {
        std::string child = joined(path, key.str());
        if (holds_tables(value)) {
            tables.emplace_back(&value, child);
        } else {
            walk(value, child);
        }
    }
    std::stable_sort(tables.begin(), tables.end(),
                     [](const auto &a, const auto &b) { return stands_before(a.first, b.first); });
    for (const auto &[node, child] : tables) {
        walk(*node, child);
    }
}

void walker::walk_array(const toml::array &array, const std::string &path) const
{
    size_t at = 0;
    for (const auto &value : array) {
        walk(value, joined(path, std::to_string(at++)));
    }
}
} // namespace

extern "C" int toml_visit(const char *text, size_t len, struct toml_error *error, toml_visit_fn fn,
                          void *arg)
{
    toml::parse_result result = toml::parse(std::string_view(len ? text : "", len));
    if (!result) {
        const toml::parse_error &why = result.error();
        error->line = static_cast<int>(why.source().begin.line);
        error->column = static_cast<int>(why.source().begin.column);
        std::snprintf(error->text, sizeof error->text, "%s",
                      std::string(why.description()).c_str());
        return -1;
    }
    walker w = {fn, arg};
    w.walk_table(result.table(), "");
    return 0;
}
