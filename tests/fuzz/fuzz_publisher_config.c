/* publisher.config.json from anywhere. */
#include "services/planner/package/package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *fuzz_env(const char *name)
{
    return name[0] == 'P' ? "value" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct publisher_config c;
    struct err e;
    if (publisher_config_parse(&a, slice_make(data, size), "/etc", fuzz_env, &c, &e) == 0) {
        for (size_t i = 0; i < c.n; i++) {
            must(c.environments[i].name[0]);
            for (size_t k = 0; k < c.environments[i].n_packages; k++) {
                char *path;
                bool is_archive;
                struct err why;
                int rc = package_location(&a, c.environments[i].packages[k].location, "/etc", &path,
                                          &is_archive, &why);
                must(rc < 0 || path[0] == '/');
            }
        }
    }
    arena_fini(&a);
    return 0;
}
