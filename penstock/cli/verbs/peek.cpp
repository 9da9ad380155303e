#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"
#include "penstock/sources/sources.h"

namespace penstock {

Verb peek_verb() {
  return {.name = "peek",
          .help = "Show the schema and first rows of a source",
          .example = "penstock peek sqlite:demo.sqlite#measurements",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            auto uri = std::make_shared<std::string>();
            options.add("source", *uri, source_examples(), {.required = true});
            add_json(options, invocation, "One JSON document");
            return [uri](Invocation&) { print_document(peek(*uri)); };
          }};
}

}  // namespace penstock
