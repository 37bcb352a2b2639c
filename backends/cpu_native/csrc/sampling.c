/* Images and volumes at the points of grids, and the two adjoints of that. */
#include "native.h"

#define AHEAD 128 /* points whose taps are found at once */

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

/* The taps of a point: those along each dimension in all combinations. */
static const int taps_along[] = {2, 1, 4};

#define IS_SINGLE_f32 1
#define TEMPLATE "sampling_template.h"
#include "both.h"

/* Images, channels, points, depth, height and width, dimensions; then mode, padding, whether the outermost
   centres are at -1 and 1, and how often the weights are derived along each dimension, the last last. */
const Row sampling_rows[] = {
    {"grid_values_f32", "wrriiiiiiiiiiiii", "t012,t01345,t026", grid_values_f32},
    {"grid_values_f64", "wrriiiiiiiiiiiii", "t012,t01345,t026", grid_values_f64},
    {"grid_spread_f32", "wrriiiiiiiiiiiii", "t01345,t012,t026", grid_spread_f32},
    {"grid_spread_f64", "wrriiiiiiiiiiiii", "t01345,t012,t026", grid_spread_f64},
    {"grid_slopes_f32", "wrrriiiiiiiiiiiii", "t026,t012,t01345,t026", grid_slopes_f32},
    {"grid_slopes_f64", "wrrriiiiiiiiiiiii", "t026,t012,t01345,t026", grid_slopes_f64},
    {NULL, NULL, NULL, NULL},
};
