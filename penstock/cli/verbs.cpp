#include "penstock/cli/verb.h"

namespace penstock {

// One line for each verb, in the order of `penstock --help`: the function is in
// verbs/NAME.cpp.
#define PENSTOCK_VERBS(VERB) \
  VERB(quickstart)           \
  VERB(train)                \
  VERB(predict)              \
  VERB(evaluate)             \
  VERB(explain)              \
  VERB(batch)                \
  VERB(peek)                 \
  VERB(check)                \
  VERB(prepare)              \
  VERB(cache)                \
  VERB(datasets)             \
  VERB(verify_resume)        \
  VERB(demo)                 \
  VERB(bench)                \
  VERB(sim)                  \
  VERB(monitor)              \
  VERB(tokenize)             \
  VERB(quantize)             \
  VERB(merge)                \
  VERB(doctor)               \
  VERB(schema)               \
  VERB(serve)                \
  VERB(submit)               \
  VERB(jobs)                 \
  VERB(logs)                 \
  VERB(cancel)               \
  VERB(resume)

#define VERB(name) Verb name##_verb();
PENSTOCK_VERBS(VERB)
#undef VERB

const std::vector<Verb>& verbs() {
#define VERB(name) name##_verb(),
  static const std::vector<Verb> all = {PENSTOCK_VERBS(VERB)};
#undef VERB
  return all;
}

void add_json(Options& options, Invocation& invocation,
              const std::string& help) {
  options.flag("--json", invocation.json, help);
}

void add_sets(Options& options, std::vector<std::string>& sets) {
  options.add("--set", sets, "section.key=value");
}

}  // namespace penstock
