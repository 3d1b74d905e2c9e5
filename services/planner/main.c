/* kiln-planner: publish events in, build plans and jobs out. */
#include "services/planner/planner_parts.h"

int main(int argc, char **argv)
{
    bool was_child = false;
    int rc = compiler_child_main(argc, argv, &was_child);
    if (was_child) {
        return rc;
    }
    return service_run(planner_desc(), argc, argv);
}
