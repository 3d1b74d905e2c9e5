/* One suite for both transports of the bus: nng over unix sockets, and the simulated network. */
#include "common/bus/bus_transport.h"
#include "common/log/log.h"
#include "tests/conformance/bus_conformance_suites.h"
#include "tests/support/suite.h"

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("bus conformance");
    suite_add_tcase(s, bus_conformance_call_tests());
    suite_add_tcase(s, bus_conformance_end_tests());
    suite_add_tcase(s, bus_conformance_load_tests());
    suite_add_tcase(s, bus_conformance_address_tests());
    int rc = suite_run(s);
    bus_nng_end();
    return rc;
}
