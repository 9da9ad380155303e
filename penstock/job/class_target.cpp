#include "penstock/job/class_target.h"

namespace penstock {

void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields) {
  if (category_of(field_named(section, "target", name, fields)) == nullptr)
    section.refuse("target", "field '" + name + "' is no category",
                   "name a \"category\" field: {\"category\": {\"column\": "
                   "...}}");
}

}  // namespace penstock
