#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/job/job.h"

namespace penstock {

Verb schema_verb() {
  return {.name = "schema",
          .help = "Print the JSON Schema of the job file",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            add_json(options, invocation, "The output is always JSON");
            return [](Invocation&) { print(job_schema()); };
          }};
}

}  // namespace penstock
