/* The frame on the wire: topic(4) | mac(32) | Envelope (protocol.md 9). Pure: bytes in, fields out.
 */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/err/err.h"
#include <protobuf-c/protobuf-c.h>

#define BUS_VERSION 1u
#define BUS_FRAME_CAP ((size_t)16 << 20) /* whole frame */
#define BUS_FRAME_HEAD 36u
#define BUS_ID_LEN 16u

struct bus_frame {
    char topic[4];    /* "bind" and friends for hints, zeroes for calls */
    uint32_t version; /* of the sender */
    uint32_t kind;    /* number of proto/kinds.def */
    uint8_t request_id[BUS_ID_LEN], trace_id[BUS_ID_LEN];
    struct uuid installation; /* all zero: the sender does not know it yet */
    struct uuid boot;         /* of the sender */
    const char *instance;     /* the sender's configured name; never NULL after unpacking */
    uint32_t budget_ms;       /* what is left of the call when sent */
    struct slice payload;     /* packed request or reply */
    int error_code;           /* 0: no error */
    const char *error_text;   /* never NULL after unpacking */
    uint32_t retry_after_ms;
};

/* Appends the frame to out, signed when key is not empty. ERR_LIMIT: longer than the cap (out is as
 * before). */
int bus_frame_pack(const struct bus_frame *f, struct slice key, struct buf *out,
                   struct err *e) MUST_USE;
/* Everything in *out lives in the arena. ERR_BUS_FRAME: no frame, *out is cleared. ERR_MAC: key is
 * given and the mac is missing or wrong; *out is filled as far as its text goes, for the refusal
 * only. */
int bus_frame_unpack(struct slice wire, struct slice key, struct arena *a, struct bus_frame *out,
                     struct err *e) MUST_USE;
/* True when a receiver of version `own` understands a sender of version `theirs`: N and N-1, never
 * 0. */
bool bus_version_fits(uint32_t theirs, uint32_t own);
/* An error answer's code as we use it: negative always. */
int bus_error_code(int32_t wire_code);
/* Appends the packed message; nothing for NULL. */
void bus_pack_into(const ProtobufCMessage *m, struct buf *out);
