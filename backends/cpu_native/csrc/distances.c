/* Distances of every row of one matrix from every row of another, and their gradient by the first. */
#include "native.h"

#define ROWS_AT_ONCE 64 /* of the first matrix, for which a thread turns the second */
#define DEEP 128        /* columns that are turned together */
#define WIDEST_TILE 64  /* rows of the second matrix side by side */
#define ONE 1           /* the sum of magnitudes; 2 the root of the sum of squares, 0 the greatest magnitude */
#define TWO 2

#define TEMPLATE "distances_template.h"
#include "both.h"

const Row distances_rows[] = {
    {"cdist_f32", "wrriiiii", "t012,t013,t023", cdist_f32},
    {"cdist_f64", "wrriiiii", "t012,t013,t023", cdist_f64},
    {"cdist_backward_f32", "wrrrriiiii", "t013,t012,t013,t023,t012", cdist_backward_f32},
    {"cdist_backward_f64", "wrrrriiiii", "t013,t012,t013,t023,t012", cdist_backward_f64},
    {NULL, NULL, NULL, NULL},
};
