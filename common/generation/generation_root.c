/* Who owns a root: one file, taken under a lock, so that two who start at once do not both have it.
 */
#include "common/generation/generation.h"
#include "common/generation/generation_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER_MOST 4096

int generation_root_read(const char *root, struct generation_owner *out, struct err *e)
{
    auto_free char *path = xasprintf("%s/" GENERATION_ROOT_FILE, root);
    auto_buf struct buf text = {0};
    int rc = gen_io_get(path, OWNER_MOST, &text, e);
    if (rc < 0) {
        return rc;
    }
    if (generation_owner_parse(buf_slice(&text), out) < 0) {
        return err_set(e, ERR_GENERATION,
                       "'%s' is no owner file; if no other Kiln uses this directory, remove it",
                       path);
    }
    return 0;
}

int generation_root_is(const char *root, const struct uuid *installation, const struct uuid *id,
                       struct err *e)
{
    struct generation_owner owner;
    int rc = generation_root_read(root, &owner, e);
    if (rc < 0) {
        (void)err_wrap(e, "generation root '%s' is not reachable", root);
        return rc;
    }
    if (!uuid_eq(&owner.installation, installation)) {
        return err_set(e, ERR_GENERATION,
                       "generation root '%s' belongs to another installation; give this process "
                       "the directory that its builders write to",
                       root);
    }
    if (!id16_is_zero(id->b) && !uuid_eq(&owner.root_id, id)) {
        return err_set(e, ERR_GENERATION,
                       "generation root '%s' is not the one that the results stand in; all hosts "
                       "must share one directory",
                       root);
    }
    return 0;
}

static int refuse(const char *root, const struct generation_owner *owner, int64_t now_us,
                  struct err *e)
{
    char id[UUID_TEXT];
    uuid_format(&owner->installation, id);
    int64_t ago = (now_us - owner->renewed_us) / 1000000;
    return err_set(
        e, ERR_CONFLICT,
        "generation root '%s' belongs to another installation (%s, seen %lld s ago); give "
        "this one a directory of its own",
        root, id, (long long)(ago > 0 ? ago : 0));
}

static int claim(const char *root, const struct uuid *us, int64_t now_us,
                 struct generation_owner *out, struct err *e)
{
    struct generation_owner owner;
    int rc = generation_root_read(root, &owner, e);
    if (rc < 0 && rc != ERR_NOT_FOUND) {
        return rc;
    }
    enum generation_claim claim = generation_claim_of(rc == 0 ? &owner : NULL, us, now_us);
    if (claim == GENERATION_CLAIM_HELD) {
        return refuse(root, &owner, now_us, e);
    }
    if (claim == GENERATION_CLAIM_FREE) {
        owner.root_id = uuid_random();
    }
    owner.installation = *us;
    owner.renewed_us = now_us;
    auto_buf struct buf text = {0};
    generation_owner_print(&owner, &text);
    rc = gen_io_put(root, GENERATION_ROOT_FILE, buf_slice(&text), e);
    if (rc == 0) {
        *out = owner;
    }
    return rc;
}

int generation_root_claim(const char *root, const struct uuid *installation, int64_t now_us,
                          struct generation_owner *out, struct err *e)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return gen_io_error(e, "open the generation root", root);
    }
    int rc = 0;
    while ((rc = flock(fd, LOCK_EX)) < 0 && errno == EINTR) {
    }
    rc = rc < 0 ? gen_io_error(e, "lock", root) : claim(root, installation, now_us, out, e);
    (void)close(fd); /* and with it the lock */
    return rc;
}
