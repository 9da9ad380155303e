#include "penstock/job/class_target.h"

namespace penstock {

void check_not_one_hot(const Spec& section, const Field& target) {
  const Category* const category = category_of(target);
  if (category == nullptr || category->one_hot == 0) return;
  section.refuse("target",
                 "field '" + target.name +
                     "' is one_hot, and a target is the number of a class",
                 "leave \"one_hot\" out of that field; it is for inputs");
}

void check_class_target(const Spec& section, const std::string& name,
                        const std::vector<Field>& fields) {
  const Field& field = field_named(section, "target", name, fields);
  if (category_of(field) == nullptr && multi_hot_of(field) == nullptr)
    section.refuse(
        "target",
        "field '" + name + "' is neither a category nor a multi_hot field",
        "name a \"category\" field: {\"category\": {\"column\": "
        "...}}, or a \"multi_hot\" one of several labels");
  check_not_one_hot(section, field);
}

}  // namespace penstock
