#include "penstock/session/made_up_tensors.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

/// Of a field whose rows differ in length: how long they are at most.
std::int64_t longest_of(const Field& field, const FittedFields& data) {
  const FieldFacts& facts = field.kind->facts();
  if (facts.packing) return facts.packing->size;
  std::int64_t most = 0;
  for (const Output& output : facts.outputs)
    most = std::max<std::int64_t>(most, output.most);
  const Json& found = data.statistics_of(field.name);
  const Json* longest = found.is_object() ? found.find("longest") : nullptr;
  if (longest == nullptr || !longest->is_number()) return most;
  return most == 0 ? longest->integer() : std::min(most, longest->integer());
}

void add(std::vector<MadeUpTensor>& to, const Output& output,
         std::int64_t longest) {
  MadeUpTensor tensor{.name = output.name,
                      .dtype = output.dtype,
                      .row_shape = output.row_shape};
  if (output.lengths != Lengths::equal)
    tensor.row_shape.insert(tensor.row_shape.begin(), longest);
  to.push_back(std::move(tensor));
  if (!output.own_lengths()) return;
  const bool padded = output.lengths == Lengths::padded;
  const char* ending = padded ? "_lengths" : "_cu_seqlens";
  to.push_back(
      {.name = output.beside.empty() ? output.name + ending : output.beside,
       .dtype = Dtype::int32,
       .row_shape = {},
       .offsets = padded ? 0 : longest,
       .lengths = padded ? longest : 0});
}

}  // namespace

std::vector<MadeUpTensor> made_up_tensors(const FittedFields& data) {
  std::vector<MadeUpTensor> tensors;
  for (const Field& field : data.fields) {
    const std::int64_t longest =
        std::max<std::int64_t>(1, longest_of(field, data));
    for (const Output& output : field.kind->facts().outputs)
      add(tensors, output, longest);
  }
  return tensors;
}

}  // namespace penstock
