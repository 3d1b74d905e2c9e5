/* A frame of the bus from anyone: it decodes or not, never passes a key it was not signed with, and
 * what decodes packs again. */
#include "common/bus/bus.h"
#include "common/bus/bus_envelope.h"
#include "proto/planner.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void packs_again(const struct bus_frame *f, struct arena *a)
{
    auto_buf struct buf wire;
    struct bus_frame back;
    buf_init(&wire);
    must(bus_frame_pack(f, SLICE("key"), &wire, NULL) == 0);
    must(bus_frame_unpack(buf_slice(&wire), SLICE("key"), a, &back, NULL) == 0);
    must(back.version == f->version && back.kind == f->kind && back.budget_ms == f->budget_ms);
    must(memcmp(back.request_id, f->request_id, BUS_ID_LEN) == 0);
    must(strcmp(back.instance, f->instance) == 0);
    must(slice_eq(back.payload, f->payload));
    must(back.error_code == f->error_code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct bus_frame f;
    struct err e = {0};
    struct slice wire = slice_make(data, size);
    arena_init(&a);
    int signed_rc = bus_frame_unpack(wire, SLICE("a key nobody has"), &a, &f, &e);
    must(signed_rc == ERR_MAC || signed_rc == ERR_BUS_FRAME);
    int rc = bus_frame_unpack(wire, SLICE_NONE, &a, &f, &e);
    must(rc == 0 || (rc == ERR_BUS_FRAME && e.text[0]));
    must(f.instance && f.error_text && f.error_code <= 0);
    must((rc == 0) == (signed_rc == ERR_MAC));
    if (rc == 0) {
        packs_again(&f, &a);
        err_clear(&e);
        const void *m = bus_unpack(&kiln__create_run_req__descriptor, &a, f.payload, &e);
        must(!m == !!e.code);
    }
    arena_fini(&a);
    return 0;
}
