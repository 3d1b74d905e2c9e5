#include "services/gateway/core/sets.h"

enum { GOOD_MS = 60000, LOOK_AFTER_MS = 50000, GIVE_UP_MS = 3000 };

void sets_read(struct sets_watch *w, struct ms at)
{
    if (w->read_at.v < at.v) {
        w->read_at = at;
        w->is_looking = false;
        w->good_until = at.v + GOOD_MS;
    }
}

bool sets_look(struct sets_watch *w, struct ms now)
{
    bool is_fresh = w->read_at.v > 0 && now.v < w->read_at.v + LOOK_AFTER_MS;
    if (w->good_until == SETS_NEVER_OLD || is_fresh) {
        return false;
    }
    if (!w->is_looking) {
        w->is_looking = true;
        w->look_since = now;
        return false;
    }
    if (now.v < w->look_since.v + GIVE_UP_MS) {
        return false;
    }
    w->is_looking = false;
    w->good_until = SETS_NEVER_OLD;
    return true;
}
