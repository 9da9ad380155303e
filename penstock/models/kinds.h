#pragma once

// The kinds of models that the trainer has: make_NAME_stepper() is compiled
// into it, the descriptor NAME_model(), in the folder NAME, into the program.
#define PENSTOCK_TRAINER_KINDS(KIND) \
  KIND(set_position)                 \
  KIND(tabular)                      \
  KIND(causal_lm) KIND(image_classifier) KIND(spectrogram_classifier)
// All kinds: "own" is a user's, in Python.
#define PENSTOCK_MODEL_KINDS(KIND) PENSTOCK_TRAINER_KINDS(KIND) KIND(own)
