#include "tests/conformance/store_fixture.h"
TCase *coord_case(void)
{
    return tcase_create("coord");
}
