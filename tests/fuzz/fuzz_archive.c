/* Archives from anywhere: nothing may crash, and what is accepted keeps every promise of package.h.
 */
#include "services/planner/package/package.h"
#include "services/planner/package/package_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct package_limits lim = {.small_bytes = 1 << 16, .archive_bytes = 1 << 20, .files = 100};
    struct package_files out;
    struct err e;
    uint64_t total = 0;
    if (package_read_archive(&a, slice_make(data, size), &lim, &out, &e) == 0) {
        must(out.n <= lim.files);
        for (size_t i = 0; i < out.n; i++) {
            must(!package_path_fault(slice_of(out.items[i].path)));
            must(i == 0 || strcmp(out.items[i - 1].path, out.items[i].path) < 0);
            must(out.items[i].content.p && out.items[i].content.len == out.items[i].bytes);
            total += out.items[i].bytes;
        }
        must(total <= lim.archive_bytes);
    } else {
        must(e.code < 0 && e.text[0]);
    }
    arena_fini(&a);
    return 0;
}
