/* How long a gateway's binding sets count as the newest ones (protocol.md 6). Pure. */
#pragma once
#include "common/base/ms.h"

#define SETS_NEVER_OLD INT64_MAX

struct sets_watch {
    struct ms read_at; /* when planner or Redis last said that there are no others */
    struct ms look_since;
    bool is_looking;
    int64_t good_until; /* ms; SETS_NEVER_OLD: nobody answers, and it goes on */
};
/* Planner or Redis answered; `at`: when it was asked. */
void sets_read(struct sets_watch *w, struct ms at);
/* Every two seconds at the latest while the process is awake. True: from now on it goes on with the
 * sets it has, because neither planner nor Redis answers. One that asked all the time never doubts
 * them; one that slept does for three seconds. */
bool sets_look(struct sets_watch *w, struct ms now);
