/* Years begin in March here: the day that leap years have more is then the last one. */
#include "common/base/civil.h"

#include <stdbool.h>

enum { DAYS_TO_1970 = 719468, DAYS_OF_400_YEARS = 146097 };

struct civil_date civil_of_days(int64_t days)
{
    int64_t z = days + DAYS_TO_1970;
    int64_t era = (z >= 0 ? z : z - DAYS_OF_400_YEARS + 1) / DAYS_OF_400_YEARS;
    int64_t in_era = z - era * DAYS_OF_400_YEARS;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t shifted = (5 * in_year + 2) / 153;
    struct civil_date d = {.day = (int)(in_year - (153 * shifted + 2) / 5 + 1),
                           .month = (int)(shifted < 10 ? shifted + 3 : shifted - 9)};
    d.year = y + era * 400 + (d.month <= 2);
    return d;
}

int64_t civil_days(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t in_era = y - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * DAYS_OF_400_YEARS + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           DAYS_TO_1970;
}
