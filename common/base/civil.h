/* Days and dates of the proleptic Gregorian calendar. Pure. */
#pragma once
#include <stdint.h>

struct civil_date {
    int64_t year; /* 0 is 1 BC */
    int month, day;
};
struct civil_date civil_of_days(int64_t days); /* since 1970-01-01 */
int64_t civil_days(int64_t year, int month, int day);
