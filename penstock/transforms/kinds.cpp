#include "penstock/transforms/kinds.h"

namespace penstock {

// One line for each kind: the function is in its folder.
#define PENSTOCK_FIELD_KINDS(KIND) \
  KIND(json_set)                   \
  KIND(numbers)                    \
  KIND(number)                     \
  KIND(category)                   \
  KIND(multi_hot)                  \
  KIND(array)                      \
  KIND(time)                       \
  KIND(text)                       \
  KIND(tokens)                     \
  KIND(image)                      \
  KIND(boxes)                      \
  KIND(audio)

#define KIND(name) FieldDescriptor name##_field();
PENSTOCK_FIELD_KINDS(KIND)
#undef KIND

const std::vector<FieldDescriptor>& field_descriptors() {
#define KIND(name) name##_field(),
  static const std::vector<FieldDescriptor> all = {PENSTOCK_FIELD_KINDS(KIND)};
#undef KIND
  return all;
}

}  // namespace penstock
