/* LSTM and GRU, forward and backward: one step, which is what stands between two matrix products, and whole
   sequences with the products. */
#include "product.h"

#define TEMPLATE "recurrent_template.h"
#include "both.h"

#define BOTH(name, arguments, extents)                         \
    {#name "_f32", arguments, extents, name##_f32}, {#name "_f64", arguments, extents, name##_f64}

const Row recurrent_rows[] = {
    BOTH(lstm_step, "wwwwriiii", "4t(0+1)2,t(0+1)2,t12,t(3+1)2,4t(0+1)2"),
    BOTH(lstm_step_backward, "wwwooorrriii",
         "4t(0+1)2,t12,t12,t(0+1)2,t(0+1)2,4t(0+1)2,4t(0+1)2,t(0+1)2,t(0+1)2"),
    BOTH(gru_step, "wwwrroiii", "4t(0+1)2,t12,t(0+1)2,3t12,3t(0+1)2,3t2"),
    BOTH(gru_step_backward, "wwwoorriii", "3t(0+1)2,3t(0+1)2,t12,t(0+1)2,4t(0+1)2,4t(0+1)2,t(0+1)2"),
    BOTH(lstm_sequence, "wwwwwrrriiiii", "4t02,t02,t12,t12,t02,4t02,t42,2d3"),
    BOTH(lstm_sequence_backward, "wwwooorrrrriiiii",
         "4t02,t12,t12,t02,t02,4t02,4t02,t02,t02,4t42,2d3"),
    BOTH(gru_sequence, "wwwwrorriiiii", "4t02,t12,t02,3t12,3t02,3t2,t42,2d3"),
    BOTH(gru_sequence_backward, "wwwwoorrrriiiii", "3t02,3t02,t12,t12,t02,4t02,4t02,t02,3t42,2d3"),
    {NULL, NULL, NULL, NULL},
};
