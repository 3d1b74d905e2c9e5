/* kiln-gateway: the front door; binds manifests and answers queries with a receipt. */
#include "services/gateway/gateway_parts.h"

int main(int argc, char **argv)
{
    bool was_child = false;
    int rc = compiler_child_main(argc, argv, &was_child);
    if (was_child) {
        return rc;
    }
    return service_run(gateway_desc(), argc, argv);
}
