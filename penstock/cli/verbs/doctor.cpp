#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"

namespace penstock {
namespace {

std::string line_of(const Json& part) {
  bool there = std::get<bool>(part.find("there")->value());
  return (there ? "  ok  " : "  --  ") + part.find("part")->string() + ": " +
         part.find("says")->string() + "\n";
}

void run_doctor(Invocation& invocation) {
  Json json = doctor();
  if (invocation.json) return print_document(json);
  print(json.find("machine")->dump(2) + "\n");
  for (const Json& part : json.find("parts")->array()) print(line_of(part));
}

}  // namespace

Verb doctor_verb() {
  return {.name = "doctor",
          .help = "Show what this machine and this build can do",
          .add = [](Options& options, Invocation& invocation) -> RunVerb {
            add_json(options, invocation, "One JSON document");
            return run_doctor;
          }};
}

}  // namespace penstock
