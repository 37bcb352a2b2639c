/* One step of an LSTM or GRU, forward and backward: what stands between two matrix products. */
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
    {NULL, NULL, NULL, NULL},
};
