/* Sums, means and maxima of the rows of a table that bags of indices name. */
#include "native.h"

#define TEMPLATE "bags_template.h"
#include "both.h"

const Row bags_rows[] = {
    {"bags_f32", "wwwWrrroiiiiii", "t23,d1,d2,d23,t03,d1,d2,t1", bags_f32},
    {"bags_f64", "wwwWrrroiiiiii", "t23,d1,d2,d23,t03,d1,d2,t1", bags_f64},
    {NULL, NULL, NULL, NULL},
};
