/* Inside of service: the frame's state, shared by its files. Not for anyone else. */
#pragma once
#include "common/service/service.h"

struct health_condition {
    struct list link;
    char *name;
    char *reason; /* why not ok; "" when ok */
    bool required, ok;
};

struct service {
    const struct service_desc *desc;
    struct loop *loop;
    struct arena arena;
    void *settings, *state;
    char **rest;
    struct list conditions; /* of struct health_condition, in order of first mention */
    size_t n_open; /* parts started and not yet closed; they close from the last to the first */
    bool draining;
    bool part_closing; /* the last open part was asked to close and has not said it is */
    bool cut_short;    /* the loop was left with something open */
    struct service *next_abandoned;
    int exit_code;
    struct loop_task close_next;
    struct loop_timer drain_limit;
};

void service_drain(struct service *s);
void health_fini(struct service *s);
