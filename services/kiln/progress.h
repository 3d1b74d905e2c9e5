/* How far a run is: a bar on a terminal, a line per step elsewhere. Written to standard error. */
#pragma once
#include "common/base/ms.h"
#include "common/json/json.h"

struct progress {
    bool on_terminal;
    struct ms begun;
    char said[64]; /* what the last plain line told: stage and counts */
};

void progress_begin(struct progress *p, struct ms now);
/* run: a run record; its "progress" has targets, done, rows and stage while it is active. */
void progress_show(struct progress *p, const json_t *run, struct ms now);
void progress_end(struct progress *p); /* takes the bar away */
/* One line of it, without line end: for progress_show and its test. width: of the terminal, 0:
 * none. */
void progress_line(const json_t *run, int64_t elapsed_ms, size_t width, struct buf *out);
/* 1234567 as "1.2 M"; below ten thousand as it is. */
void progress_count(struct buf *out, int64_t n);
/* 3400 as "3.4 s", 125000 as "2 min 5 s". */
void progress_span(struct buf *out, int64_t ms);
