#include "penstock/job/class_target.h"

namespace penstock {

void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields) {
  const Field& field = field_named(section, "target", name, fields);
  if (category_of(field) == nullptr && multi_hot_of(field) == nullptr)
    section.refuse(
        "target",
        "field '" + name + "' is neither a category nor a multi_hot field",
        "name a \"category\" field: {\"category\": {\"column\": "
        "...}}, or a \"multi_hot\" one of several labels");
}

}  // namespace penstock
