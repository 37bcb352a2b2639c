/* The loss of sequences of unknown alignment (connectionist temporal classification), and its gradient; the op
   explains both.  All is computed in double, a sequence after the other: α and β of a step are loops over states. */
#define TEMPLATE "sequences_template.h"
#include "sequences.h"
#include "both.h"

const Row sequences_rows[] = {
    {"ctc_loss_f32", "wwrrrriiiiiii", "t1,d16,t012,d13,d1,d1", ctc_loss_f32},
    {"ctc_loss_f64", "wwrrrriiiiiii", "t1,d16,t012,d13,d1,d1", ctc_loss_f64},
    {"ctc_loss_backward_f32", "wwrrrrriiiiiiii", "t012,d16,t1,t012,d13,d1,d1", ctc_loss_backward_f32},
    {"ctc_loss_backward_f64", "wwrrrrriiiiiiii", "t012,d16,t1,t012,d13,d1,d1", ctc_loss_backward_f64},
    {NULL, NULL, NULL, NULL},
};
