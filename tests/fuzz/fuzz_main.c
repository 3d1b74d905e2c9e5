/* Runs a fuzz target without libFuzzer: every file of a corpus folder, then mutations of them.
 * fuzz_x CORPUS [ROUNDS [SEED]]; the seed is printed, so that a crash can be had again. */
#include "common/base/buf.h"
#include <dirent.h>
#include <stdio.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES_MAX = 1000, INPUT_MAX = 1 << 16 };

struct corpus {
    struct buf files[FILES_MAX];
    size_t n;
};

static uint64_t state;

static uint64_t draw(void) /* xorshift64 */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t draw_below(size_t n)
{
    return n ? (size_t)(draw() % n) : 0;
}

static void load_file(struct corpus *c, const char *path)
{
    FILE *f = fopen(path, "rbe");
    if (!f) {
        return;
    }
    struct buf *b = &c->files[c->n++];
    buf_reserve(b, INPUT_MAX);
    b->len = fread(b->p, 1, INPUT_MAX, f);
    b->p[b->len] = '\0';
    (void)fclose(f);
}

static int load(struct corpus *c, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        return -1;
    }
    for (struct dirent *d; (d = readdir(dir)) && c->n < FILES_MAX;) {
        if (d->d_name[0] != '.') {
            auto_free char *path = xasprintf("%s/%s", folder, d->d_name);
            load_file(c, path);
        }
    }
    (void)closedir(dir);
    return c->n ? 0 : -1;
}

static void mutate_once(struct buf *b, const struct corpus *c)
{
    size_t at = draw_below(b->len);
    switch (draw() % 6) {
    case 0: /* flip a bit */
        if (b->len) {
            b->p[at] = (char)(b->p[at] ^ (1 << (draw() % 8)));
        }
        return;
    case 1: /* any byte */
        if (b->len) {
            b->p[at] = (char)draw();
        }
        return;
    case 2: /* cut the end off */
        b->len = at;
        return;
    case 3: /* drop bytes at the front */
        buf_drop(b, draw_below(b->len < 16 ? b->len : 16));
        return;
    case 4: { /* repeat a piece of itself */
        auto_free char *piece = xstrndup("", 0);
        size_t len = draw_below(b->len - at < 64 ? b->len - at : 64);
        piece = xrealloc(piece, len + 1);
        memcpy(piece, b->p + at, len);
        buf_add(b, piece, len);
        return;
    }
    default: { /* the tail of another file */
        const struct buf *other = &c->files[draw_below(c->n)];
        size_t from = draw_below(other->len);
        b->len = at;
        buf_add(b, other->p + from, other->len - from);
        return;
    }
    }
}

static void run_one(const struct buf *b)
{
    /* Exactly sized, so that the sanitizer sees a read past the end. */
    auto_free uint8_t *copy = xmalloc(b->len ? b->len : 1);
    memcpy(copy, buf_str(b), b->len);
    (void)LLVMFuzzerTestOneInput(copy, b->len);
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    if (argc < 2 || load(&corpus, argv[1])) {
        (void)fprintf(stderr, "usage: %s CORPUS [ROUNDS [SEED]]; CORPUS is a folder with files\n",
                      argv[0]);
        return 2;
    }
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
    state = state ? state : 1;
    (void)printf("files=%zu rounds=%lu seed=%llu\n", corpus.n, rounds, (unsigned long long)state);
    (void)fflush(stdout);
    for (size_t i = 0; i < corpus.n; i++) {
        run_one(&corpus.files[i]);
    }
    struct buf b = {0};
    for (unsigned long i = 0; i < rounds; i++) {
        const struct buf *from = &corpus.files[draw_below(corpus.n)];
        buf_clear(&b);
        buf_add(&b, buf_str(from), from->len);
        for (size_t n = 1 + draw_below(4); n > 0 && b.len < INPUT_MAX; n--) {
            mutate_once(&b, &corpus);
        }
        run_one(&b);
    }
    buf_fini(&b);
    for (size_t i = 0; i < corpus.n; i++) {
        buf_fini(&corpus.files[i]);
    }
    return 0;
}
