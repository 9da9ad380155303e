#include <memory>

#include "penstock/base/half.h"
#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/run/run.h"

namespace penstock {
namespace {

struct ModelArguments {
  std::string model, out, dtype = "bfloat16";
  bool single = false;
};

Json json_of(const WrittenModel& written, const std::string& out) {
  Json json;
  json["out"] = out;
  json["layers"] = written.layers;
  json["bytes_before"] = written.bytes_before;
  json["bytes_after"] = written.bytes_after;
  return json;
}

void show(const WrittenModel& written, const ModelArguments& arguments,
          const char* done, bool json) {
  if (json) return print_document(json_of(written, arguments.out));
  print(std::to_string(written.layers) + " layers were " + done + ", " +
        shown_bytes(static_cast<std::size_t>(written.bytes_before)) + " -> " +
        shown_bytes(static_cast<std::size_t>(written.bytes_after)) + ": " +
        arguments.out + "\n");
}

void run_quantize(const ModelArguments& arguments,
                  const Invocation& invocation) {
  show(quantize_model(arguments.model, arguments.out, !arguments.single),
       arguments, "quantised", invocation.json);
}

void run_merge(const ModelArguments& arguments, const Invocation& invocation) {
  Dtype dtype = Dtype::bfloat16;
  if (!dtype_from(arguments.dtype, dtype) || !is_half(dtype))
    throw Error(ErrorKind::request,
                {.code = "settings.value",
                 .what = "cannot use an option",
                 .where = "--dtype",
                 .why = "found \"" + arguments.dtype +
                        "\", expected bfloat16 or float16",
                 .next = "leave the option out for bfloat16"});
  show(merge_adapters(read_trained_run(arguments.model), arguments.out, dtype),
       arguments, "merged", invocation.json);
}

}  // namespace

Verb quantize_verb() {
  return {
      .name = "quantize",
      .help = "Write a language model with four-bit weights",
      .example = "penstock quantize qwen3-0.6b --out qwen3-0.6b-nf4",
      .add = [](Options& options, Invocation& invocation) -> RunVerb {
        auto arguments = std::make_shared<ModelArguments>();
        options.add("model", arguments->model,
                    "The folder of a Hugging Face model", {.required = true});
        options.add("--out", arguments->out,
                    "The folder to write: new or empty", {.required = true});
        options.flag("--single", arguments->single,
                     "Keep the scales of the weights in 32 bits instead of 8 "
                     "(no double quantisation)");
        add_json(options, invocation, "What was written, as a document");
        return [arguments](Invocation& of) { run_quantize(*arguments, of); };
      }};
}

Verb merge_verb() {
  return {
      .name = "merge",
      .help = "Write a language model with the adapters of a run added to it",
      .example = "penstock merge runs/latest --out merged",
      .add = [](Options& options, Invocation& invocation) -> RunVerb {
        auto arguments = std::make_shared<ModelArguments>();
        options.add("run", arguments->model,
                    "A run's folder, or what --output left",
                    {.required = true});
        options.add("--out", arguments->out,
                    "The folder to write: new or empty", {.required = true});
        options.add("--dtype", arguments->dtype,
                    "Type of the weights: bfloat16 (default) or float16");
        add_json(options, invocation, "What was written, as a document");
        return [arguments](Invocation& of) { run_merge(*arguments, of); };
      }};
}

}  // namespace penstock
