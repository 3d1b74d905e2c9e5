#include "common/bus/bus_envelope.h"
#include "common/bus/bus.h"
#include "proto/envelope.pb-c.h"

enum { MAC_AT = 4, MAC_LEN = 32 };

static void *from_arena(void *data, size_t size)
{
    return arena_alloc(data, size);
}

static void to_nowhere(void *data, void *p)
{
    (void)data;
    (void)p; /* the arena frees */
}

ProtobufCAllocator bus_arena_allocator(struct arena *a)
{
    return (ProtobufCAllocator){.alloc = from_arena, .free = to_nowhere, .allocator_data = a};
}

void *bus_unpack(const ProtobufCMessageDescriptor *d, struct arena *a, struct slice packed,
                 struct err *e)
{
    ProtobufCAllocator alloc = bus_arena_allocator(a);
    ProtobufCMessage *m =
        protobuf_c_message_unpack(d, &alloc, packed.len, (const uint8_t *)packed.p);
    if (!m) {
        err_set(e, ERR_BUS_FRAME, "a message of %zu bytes does not decode as %s", packed.len,
                d->short_name);
    }
    return m;
}

void bus_pack_into(const ProtobufCMessage *m, struct buf *out)
{
    if (!m) {
        return;
    }
    size_t len = protobuf_c_message_get_packed_size(m);
    buf_reserve(out, len);
    (void)protobuf_c_message_pack(m, (uint8_t *)out->p + out->len);
    out->len += len;
    out->p[out->len] = '\0';
}

bool bus_version_fits(uint32_t theirs, uint32_t own)
{
    return theirs != 0 && (theirs == own || theirs + 1 == own);
}

int bus_error_code(int32_t wire_code)
{
    return wire_code < 0 ? wire_code : ERR_INTERNAL;
}

/* The packer only reads, but protobuf-c's structs have no const. */
static ProtobufCBinaryData bytes_of(const void *p, size_t len)
{
    union {
        const void *in;
        uint8_t *out;
    } u = {.in = p};
    return (ProtobufCBinaryData){.len = len, .data = u.out};
}

static char *text_of(const char *text)
{
    union {
        const char *in;
        char *out;
    } u = {.in = text ? text : ""};
    return u.out;
}

int bus_frame_pack(const struct bus_frame *f, struct slice key, struct buf *out, struct err *e)
{
    Kiln__Error error = KILN__ERROR__INIT;
    Kiln__Envelope v = KILN__ENVELOPE__INIT;
    v.version = f->version;
    v.kind = f->kind;
    v.request_id = bytes_of(f->request_id, BUS_ID_LEN);
    v.trace_id = bytes_of(f->trace_id, BUS_ID_LEN);
    v.installation = bytes_of(f->installation.b, sizeof(f->installation.b));
    v.instance = text_of(f->instance);
    v.boot = bytes_of(f->boot.b, sizeof(f->boot.b));
    v.budget_ms = f->budget_ms;
    v.payload = bytes_of(f->payload.p, f->payload.len);
    if (f->error_code) {
        error.code = f->error_code;
        error.name = text_of(err_code_name(f->error_code));
        error.text = text_of(f->error_text);
        error.retry_after_ms = f->retry_after_ms;
        v.error = &error;
    }
    size_t len = kiln__envelope__get_packed_size(&v);
    if (len > BUS_FRAME_CAP - BUS_FRAME_HEAD) {
        return err_set(e, ERR_LIMIT, "a bus message of %zu bytes is over the limit of %zu bytes",
                       len + BUS_FRAME_HEAD, BUS_FRAME_CAP);
    }
    static const uint8_t no_mac[MAC_LEN];
    size_t at = out->len;
    buf_reserve(out, BUS_FRAME_HEAD + len);
    buf_add(out, f->topic, sizeof(f->topic));
    buf_add(out, no_mac, MAC_LEN);
    kiln__envelope__pack(&v, (uint8_t *)out->p + out->len);
    out->len += len;
    out->p[out->len] = '\0';
    if (key.len) {
        hmac_sha256(key, slice_make(out->p + at, BUS_FRAME_HEAD + len),
                    (uint8_t *)out->p + at + MAC_AT);
    }
    return 0;
}

static bool mac_is_right(struct slice wire, struct slice key, struct arena *a)
{
    char *copy = arena_dup(a, wire.p, wire.len);
    uint8_t mac[MAC_LEN];
    memset(copy + MAC_AT, 0, MAC_LEN);
    hmac_sha256(key, slice_make(copy, wire.len), mac);
    return crypto_equal(mac, wire.p + MAC_AT, MAC_LEN);
}

/* An id is 16 bytes or absent, which reads as zeroes. */
static bool take_id(ProtobufCBinaryData from, uint8_t to[BUS_ID_LEN])
{
    if (from.len == 0) {
        return true;
    }
    if (from.len != BUS_ID_LEN) {
        return false;
    }
    memcpy(to, from.data, BUS_ID_LEN);
    return true;
}

static bool take_fields(const Kiln__Envelope *v, struct bus_frame *out)
{
    out->version = v->version;
    out->kind = v->kind;
    out->instance = v->instance;
    out->budget_ms = v->budget_ms;
    out->payload = slice_make(v->payload.data, v->payload.len);
    out->error_text = "";
    if (v->error) {
        out->error_code = bus_error_code(v->error->code);
        out->error_text = v->error->text;
        out->retry_after_ms = v->error->retry_after_ms;
    }
    return take_id(v->request_id, out->request_id) && take_id(v->trace_id, out->trace_id) &&
           take_id(v->installation, out->installation.b) && take_id(v->boot, out->boot.b);
}

int bus_frame_unpack(struct slice wire, struct slice key, struct arena *a, struct bus_frame *out,
                     struct err *e)
{
    *out = (struct bus_frame){.instance = "", .error_text = ""};
    if (wire.len < BUS_FRAME_HEAD || wire.len > BUS_FRAME_CAP) {
        return err_set(e, ERR_BUS_FRAME, "a frame of %zu bytes is no bus frame", wire.len);
    }
    ProtobufCAllocator alloc = bus_arena_allocator(a);
    const Kiln__Envelope *v = kiln__envelope__unpack(&alloc, wire.len - BUS_FRAME_HEAD,
                                                     (const uint8_t *)wire.p + BUS_FRAME_HEAD);
    if (!v || !take_fields(v, out)) {
        *out = (struct bus_frame){.instance = "", .error_text = ""};
        return err_set(e, ERR_BUS_FRAME, "a frame of %zu bytes holds no envelope", wire.len);
    }
    memcpy(out->topic, wire.p, sizeof(out->topic));
    if (key.len && !mac_is_right(wire, key, a)) {
        return err_set(e, ERR_MAC,
                       "a message that calls itself %s is not signed with our bus key: "
                       "KILN_BUS_KEY differs between the processes",
                       *out->instance ? out->instance : "nobody");
    }
    return 0;
}
