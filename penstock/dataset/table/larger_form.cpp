#include "penstock/dataset/table/larger_form.h"

#include "penstock/cache/cache.h"

namespace penstock {

std::optional<LargerForm> larger_form(const Field& field) {
  const std::optional<LargerKind>& larger = field.kind->facts().larger;
  if (!larger) return std::nullopt;
  return LargerForm{.field = {.name = field.name, .kind = larger->kind},
                    .setting = larger->setting,
                    .same_bytes = larger->same_bytes};
}

std::string finishing_note(std::size_t bytes, int threads) {
  return shown_bytes(bytes) + " of host memory are reserved for " +
         std::to_string(threads) +
         " threads that finish rows of the largest size among these";
}

}  // namespace penstock
