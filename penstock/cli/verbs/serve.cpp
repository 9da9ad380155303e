#include <memory>

#include "penstock/cli/python_program.h"
#include "penstock/cli/verb.h"

namespace penstock {
namespace {

struct ServeArguments {
  std::string config, http, socket, token_file;
  bool trust_local_user = false;
};

void run_serve(const ServeArguments& arguments, bool json) {
  Json request;
  request["config"] = arguments.config;
  request["http"] = arguments.http;
  request["socket"] = arguments.socket;
  request["token_file"] = arguments.token_file;
  request["trust_local_user"] = arguments.trust_local_user;
  request["json"] = json;
  become_python("penstock._service", request.dump(), "cannot start the service",
                "fastapi and uvicorn (pip install 'penstock[serve]')");
}

RunVerb add_serve(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<ServeArguments>();
  options.add("--config", arguments->config,
              "Recipes, connections and the folder of the runs (service.json)",
              {.required = true});
  options.add("--http", arguments->http,
              "Also serve HTTP at HOST:PORT of the loopback interface, with a "
              "token for every request");
  options.flag("--trust-local-user", arguments->trust_local_user,
               "With --http: requests of your own processes on this machine "
               "need no token");
  options.add("--socket", arguments->socket,
              "Path of the Unix socket. Default: penstock/service.sock in "
              "$XDG_RUNTIME_DIR, else in /tmp/penstock-UID");
  options.add("--token-file", arguments->token_file,
              "File of the tokens, which only you may read. Default: 'token' "
              "in the folder of the runs, written if it is missing");
  add_json(options, invocation, "Print addresses and errors as JSON");
  return
      [arguments](Invocation& invoked) { run_serve(*arguments, invoked.json); };
}

}  // namespace

Verb serve_verb() {
  return {.name = "serve",
          .help = "Run the job service: an API and a page",
          .example =
              "penstock serve --config service.json --http "
              "127.0.0.1:8000",
          .add = add_serve};
}

}  // namespace penstock
