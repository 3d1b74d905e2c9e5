/* The cases of rest_test that live in a file of their own. */
#pragma once
#include <check.h>

TCase *rest_body_case(void);
