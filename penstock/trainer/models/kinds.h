#pragma once

// One line for each kind of model: its descriptor NAME_model() is in the folder
// NAME and compiled into the program, make_NAME_stepper() into the trainer.
#define PENSTOCK_MODEL_KINDS(KIND) KIND(set_position) KIND(tabular)
