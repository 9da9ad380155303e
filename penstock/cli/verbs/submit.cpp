#include <memory>

#include "penstock/cli/python_program.h"
#include "penstock/cli/verb.h"

namespace penstock {
namespace {

struct ServiceArguments {
  std::string service, token_file, id, status, recipe, name, request, to;
  std::vector<std::string> sets;
  std::int64_t from = 0;
  bool follow = false, dry_run = false;
};

using Arguments = std::shared_ptr<ServiceArguments>;

/// Becomes the client, which does what the verb is for.
RunVerb verb_of_client(const char* verb, Arguments arguments) {
  return [verb, arguments](Invocation& invocation) {
    Json request;
    request["verb"] = verb;
    request["service"] = arguments->service;
    request["token_file"] = arguments->token_file;
    request["id"] = arguments->id;
    request["status"] = arguments->status;
    request["recipe"] = arguments->recipe;
    request["name"] = arguments->name;
    request["request"] = arguments->request;
    request["to"] = arguments->to;
    request["sets"] = Json::Array{};
    for (const std::string& set : arguments->sets)
      request["sets"].push_back(set);
    request["from"] = arguments->from;
    request["follow"] = arguments->follow;
    request["dry_run"] = arguments->dry_run;
    request["json"] = invocation.json;
    become_python("penstock.client", request.dump(),
                  "cannot ask the job service", "numpy");
  };
}

Arguments add_service(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<ServiceArguments>();
  options.add(
      "--service", arguments->service,
      "The service: http://HOST:PORT or the path of its socket. "
      "Default: $PENSTOCK_SERVICE, else the socket of 'penstock serve'");
  options.add("--token-file", arguments->token_file,
              "File of the tokens, for a service that is reached by HTTP");
  add_json(options, invocation, "One JSON document, as the service sends it");
  return arguments;
}

Arguments add_job(Options& options, Invocation& invocation) {
  Arguments arguments = add_service(options, invocation);
  options.add("id", arguments->id, "The job, as 'penstock jobs' lists it",
              {.required = true});
  return arguments;
}

RunVerb add_submit(Options& options, Invocation& invocation) {
  Arguments arguments = add_service(options, invocation);
  options.add("request", arguments->request,
              "JSON file with a request, as the API takes it. Without it: a "
              "request of --recipe, --name and --set");
  options.add("--recipe", arguments->recipe,
              "Recipe of the service. Default: the service's own default");
  options.add("--name", arguments->name, "Name of the job");
  options.add("--set", arguments->sets, "key=value of the job's config");
  options.add("--to", arguments->to,
              "k8s: with --dry-run, print a Kubernetes Job",
              {.one_of = {"service", "k8s"}});
  options.flag("--dry-run", arguments->dry_run,
               "Print what would be submitted");
  return verb_of_client("submit", arguments);
}

RunVerb add_jobs(Options& options, Invocation& invocation) {
  Arguments arguments = add_service(options, invocation);
  options.add("--status", arguments->status, "Only jobs of this status",
              {.one_of = {"queued", "running", "cancelling", "done", "failed",
                          "cancelled"}});
  return verb_of_client("jobs", arguments);
}

RunVerb add_logs(Options& options, Invocation& invocation) {
  Arguments arguments = add_job(options, invocation);
  options.add("--from", arguments->from, "Bytes of the log to leave out",
              {.least = 0});
  options.flag("--follow", arguments->follow,
               "Wait for more, until the job has ended");
  return verb_of_client("logs", arguments);
}

RunVerb add_cancel(Options& options, Invocation& invocation) {
  return verb_of_client("cancel", add_job(options, invocation));
}

RunVerb add_resume(Options& options, Invocation& invocation) {
  return verb_of_client("resume", add_job(options, invocation));
}

}  // namespace

Verb submit_verb() {
  return {.name = "submit",
          .help = "Submit a job to the service",
          .example = "penstock submit --recipe positions --set epochs=10",
          .add = add_submit};
}

Verb jobs_verb() {
  return {.name = "jobs",
          .help = "List the jobs of the service",
          .example = "penstock jobs --status running",
          .add = add_jobs};
}

Verb logs_verb() {
  return {.name = "logs",
          .help = "Print the log of a job of the service",
          .example = "penstock logs 7f3a09c1 --follow",
          .add = add_logs};
}

Verb cancel_verb() {
  return {.name = "cancel",
          .help = "Cancel a job of the service; a running one saves its state",
          .example = "penstock cancel 7f3a09c1",
          .add = add_cancel};
}

Verb resume_verb() {
  return {.name = "resume",
          .help = "Resume a cancelled or failed job of the service",
          .example = "penstock resume 7f3a09c1",
          .add = add_resume};
}

}  // namespace penstock
