#include "penstock/dataset/mixed/mixed_refusal.h"

#include <utility>

#include "penstock/base/error.h"

namespace penstock {

void refuse_source(std::string code, std::size_t source, std::string why,
                   std::string next) {
  throw Error(ErrorKind::request,
              {.code = std::move(code),
               .what = "cannot mix these sources",
               .where = "sources[" + std::to_string(source) + "]",
               .why = std::move(why),
               .next = std::move(next)});
}

}  // namespace penstock
