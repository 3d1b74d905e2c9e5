/* The rest of up_paths.h: the key file, emptying a directory, free ports. */
#include "common/base/crypto.h"
#include "services/kiln/up_paths.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- secret key ---- */
static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Complete before it has its name: a crash leaves no half a key. */
static int make_key(const char *state, const char *path, struct err *e)
{
    uint8_t key[32];
    char text[66];
    auto_free char *draft = xasprintf("%s/secret_key.new", state);
    random_bytes(key, sizeof(key));
    hex_encode(key, sizeof(key), text);
    text[64] = '\n';
    (void)unlink(draft);
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && write_all(fd, text, 65) == 0 && fsync(fd) == 0;
    ok = fd >= 0 && close(fd) == 0 && ok;
    if (!ok || rename(draft, path)) {
        return err_set(e, ERR_CONF, "cannot write the key file %s: %s", path, strerror(errno));
    }
    return 0;
}

static int read_key(int fd, const char *path, char hex[65], struct err *e)
{
    struct stat st;
    char text[80] = {0};
    uint8_t key[32];
    if (fstat(fd, &st) || st.st_mode & (S_IRWXG | S_IRWXO) || st.st_uid != geteuid()) {
        return err_set(e, ERR_CONF,
                       "the key file %s can be read by others; chmod 0600 it and give it to the "
                       "user of kiln up",
                       path);
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    struct slice key_text = slice_trim(slice_make(text, n > 0 ? (size_t)n : 0));
    if (hex_decode(key_text, key, sizeof(key))) {
        return err_set(e, ERR_CONF,
                       "the key file %s does not hold 64 hex digits; restore it, since stored "
                       "credentials open with that key only",
                       path);
    }
    memcpy(hex, key_text.p, 64);
    hex[64] = '\0';
    return 0;
}

int up_secret_key(const char *state, char hex[65], struct err *e)
{
    auto_free char *path = xasprintf("%s/secret_key", state);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        int rc = make_key(state, path, e);
        if (rc) {
            return rc;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    if (fd < 0) {
        return err_set(e, ERR_CONF, "cannot open the key file %s: %s", path,
                       errno == ELOOP ? "it is a link; remove it" : strerror(errno));
    }
    int rc = read_key(fd, path, hex, e);
    (void)close(fd);
    return rc;
}

/* ---- emptying ---- */
static int on_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    return at->level == 0 ? 0 : remove(path);
}

int up_dir_empty(const char *dir, struct err *e)
{
    struct stat st;
    if (lstat(dir, &st) && errno == ENOENT) {
        return 0;
    }
    if (nftw(dir, on_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT)) {
        return err_set(e, ERR_CONF, "cannot empty %s: %s", dir, strerror(errno));
    }
    return 0;
}

/* ---- ports ---- */
static int refused(const char *host, int port, const char *flag, int why, struct err *e)
{
    if (why == EADDRINUSE) {
        return err_set(e, ERR_CONF,
                       "port %d on %s is taken; end what listens there, or give another with %s",
                       port, host, flag);
    }
    if (why == EADDRNOTAVAIL) {
        return err_set(e, ERR_CONF,
                       "%s is no address of this machine; give one of its own with --host", host);
    }
    return err_set(e, ERR_CONF, "cannot listen on port %d of %s: %s; give another with %s", port,
                   host, strerror(why), flag);
}

int up_check_port(const char *host, int port, const char *flag, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    char service[16];
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    (void)snprintf(service, sizeof(service), "%d", port);
    if (getaddrinfo(numeric, service, &hints, &found) || !found) {
        return err_set(e, ERR_CONF,
                       "'%s' is no address to listen on; give a number such as 127.0.0.1, or "
                       "localhost, with --host",
                       host);
    }
    int one = 1, why = 0;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
        bind(fd, found->ai_addr, found->ai_addrlen)) {
        why = errno;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    freeaddrinfo(found);
    return why ? refused(host, port, flag, why, e) : 0;
}
