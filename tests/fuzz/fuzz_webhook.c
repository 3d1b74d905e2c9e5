/* Headers and body cut out of one input at line ends: none of it may pass without the secret. */
#include "services/planner/package/package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = slice_make(data, size);
    struct webhook_headers h = {0};
    struct slice *const into[] = {&h.id, &h.timestamp, &h.signature, &h.github_signature,
                                  &h.github_delivery};
    for (size_t i = 0; i < ARRAY_LEN(into); i++) {
        if (!slice_cut(&rest, '\n', into[i])) {
            break;
        }
    }
    struct slice id = SLICE_NONE;
    struct err e;
    err_clear(&e);
    int rc =
        webhook_verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &h, rest, 1614265330, &id, &e);
    must(rc == ERR_TOKEN || rc == ERR_STALE || (rc == 0 && id.len > 0 && id.len <= 200));
    must(rc == 0 || e.text[0]);
    return 0;
}
