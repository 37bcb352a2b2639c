/* One step of an LSTM or GRU, forward and backward: what stands between two matrix products. */
#define TEMPLATE "recurrent_template.h"
#include "both.h"

#define BOTH(name, arguments) {#name "_f32", arguments, name##_f32}, {#name "_f64", arguments, name##_f64}

const Row recurrent_rows[] = {
    BOTH(lstm_step, "wwwwriiii"),
    BOTH(lstm_step_backward, "wwwooorrriii"),
    BOTH(gru_step, "wwwrroiii"),
    BOTH(gru_step_backward, "wwwoorriii"),
    {NULL, NULL, NULL},
};
