#include "common/base/map.h"

#include <sys/random.h>

enum { MAP_CAP_MIN = 16 };

/* A slot without a value is a hole: its index entry stays and lets probing go on past it. Holes go
 * only when map_put rebuilds, which is why deleting never moves anything under an iterator. */
struct map_slot {
    char *text; /* owned; NULL for a u64 key */
    uint64_t number;
    size_t len;
    uint64_t hash;
    void *value;
};

struct key {
    struct slice text;
    uint64_t number;
    bool is_number;
    uint64_t hash;
};

/* Keys come from clients, so the hash is keyed (SipHash-1-3): nobody can aim at one chain. Order of
 * iteration does not depend on it. */
static uint64_t seed[2] = {0x6b696c6e2d6d6170u, 0x9e3779b97f4a7c15u};

__attribute__((constructor)) static void seed_once(void)
{
    uint64_t fresh[2];
    if (getrandom(fresh, sizeof fresh, GRND_NONBLOCK) == (ssize_t)sizeof fresh) {
        memcpy(seed, fresh, sizeof seed);
    }
}

static uint64_t rotl(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

static uint64_t hash_bytes(const void *p, size_t len)
{
    const char *at = p;
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du,
                     seed[0] ^ 0x6c7967656e657261u, seed[1] ^ 0x7465646279746573u};
    size_t left = len;
    uint64_t word;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = 0;
    if (left) {
        memcpy(&word, at, left);
    }
    word |= (uint64_t)len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct key text_key(struct slice text)
{
    return (struct key){.text = text, .hash = hash_bytes(text.p, text.len)};
}

static struct key number_key(uint64_t number)
{
    return (struct key){
        .number = number, .is_number = true, .hash = hash_bytes(&number, sizeof number)};
}

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_fini(struct map *m)
{
    for (size_t i = 0; i < m->n_slots; i++) {
        free(m->slots[i].text);
    }
    free(m->slots);
    free(m->index);
    map_init(m);
}

size_t map_len(const struct map *m)
{
    return m->n_live;
}

static bool slot_has(const struct map_slot *s, const struct key *k)
{
    if (!s->value || s->hash != k->hash || k->is_number != (s->text == NULL)) {
        return false;
    }
    return k->is_number ? s->number == k->number : slice_eq(slice_make(s->text, s->len), k->text);
}

static struct map_slot *find(const struct map *m, const struct key *k)
{
    if (m->n_live == 0) {
        return NULL;
    }
    for (size_t at = k->hash & (m->cap - 1);; at = (at + 1) & (m->cap - 1)) {
        uint32_t entry = m->index[at];
        if (entry == 0) {
            return NULL;
        }
        if (slot_has(&m->slots[entry - 1], k)) {
            return &m->slots[entry - 1];
        }
    }
}

static size_t slots_of(size_t cap)
{
    return cap / 4 * 3;
}

static void index_slot(struct map *m, size_t slot)
{
    size_t at = m->slots[slot].hash & (m->cap - 1);
    while (m->index[at] != 0) {
        at = (at + 1) & (m->cap - 1);
    }
    m->index[at] = (uint32_t)(slot + 1);
}

/* Squeezes the holes out and leaves room for at least a quarter more. */
static void rebuild(struct map *m)
{
    size_t cap = MAP_CAP_MIN;
    while (cap < (m->n_live + 1) * 2) {
        cap *= 2;
    }
    must(cap < UINT32_MAX);
    struct map_slot *slots = xcalloc(slots_of(cap), sizeof *slots);
    size_t n = 0;
    for (size_t i = 0; i < m->n_slots; i++) {
        if (m->slots[i].value) {
            slots[n++] = m->slots[i];
        }
    }
    free(m->slots);
    free(m->index);
    m->slots = slots;
    m->n_slots = n;
    m->cap = cap;
    m->index = xcalloc(cap, sizeof *m->index);
    for (size_t i = 0; i < n; i++) {
        index_slot(m, i);
    }
}

static void *put(struct map *m, const struct key *k, void *value)
{
    must(value != NULL);
    struct map_slot *s = find(m, k);
    if (s) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    if (m->n_slots == slots_of(m->cap)) {
        rebuild(m);
    }
    s = &m->slots[m->n_slots];
    *s =
        (struct map_slot){.number = k->number, .len = k->text.len, .hash = k->hash, .value = value};
    if (!k->is_number) {
        s->text = xmalloc(k->text.len + 1);
        if (k->text.len) {
            memcpy(s->text, k->text.p, k->text.len);
        }
        s->text[k->text.len] = '\0';
    }
    index_slot(m, m->n_slots);
    m->n_slots++;
    m->n_live++;
    return NULL;
}

static void *del(struct map *m, const struct key *k)
{
    struct map_slot *s = find(m, k);
    if (!s) {
        return NULL;
    }
    void *old = s->value;
    s->value = NULL;
    free(s->text);
    s->text = NULL;
    m->n_live--;
    return old;
}

static void *get(const struct map *m, const struct key *k)
{
    struct map_slot *s = find(m, k);
    return s ? s->value : NULL;
}

void *map_get(const struct map *m, struct slice key)
{
    struct key k = text_key(key);
    return get(m, &k);
}

void *map_put(struct map *m, struct slice key, void *value)
{
    struct key k = text_key(key);
    return put(m, &k, value);
}

void *map_del(struct map *m, struct slice key)
{
    struct key k = text_key(key);
    return del(m, &k);
}

void *map_get_u64(const struct map *m, uint64_t key)
{
    struct key k = number_key(key);
    return get(m, &k);
}

void *map_put_u64(struct map *m, uint64_t key, void *value)
{
    struct key k = number_key(key);
    return put(m, &k, value);
}

void *map_del_u64(struct map *m, uint64_t key)
{
    struct key k = number_key(key);
    return del(m, &k);
}

struct map_iter map_begin(const struct map *m)
{
    return (struct map_iter){.m = m};
}

bool map_next(struct map_iter *it)
{
    while (it->at < it->m->n_slots) {
        const struct map_slot *s = &it->m->slots[it->at++];
        if (s->value) {
            it->key =
                s->text ? slice_make(s->text, s->len) : slice_make(&s->number, sizeof s->number);
            it->value = s->value;
            return true;
        }
    }
    return false;
}
