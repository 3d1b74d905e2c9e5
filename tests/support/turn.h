/* Tests of what lives on a loop: turn it until something holds. */
#pragma once
#include "common/loop/loop.h"
#include <check.h>

/* Fails the test when `claim` does not hold within `patience` ms. */
#define turn_until_within(l, patience, claim)                                                      \
    do {                                                                                           \
        struct ms limit_ = ms_add(loop_now(l), MS(patience));                                      \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(loop_now(l), limit_), "never: %s", #claim);                    \
            (void)loop_turn(l, MS(20));                                                            \
        }                                                                                          \
    } while (0)
