/* The cases of package_test that live in a file of their own. */
#pragma once
#include <check.h>

TCase *archive_case(void);
