// What do weights become in four bits, and back?
//
// Quantises every floating tensor X of a safetensors file, with scales of 32
// and of 8 bits, and dequantises every tensor that the file has as NF4. Writes
// X.single and X.nested in bitsandbytes' layout, and W.dequantized, for
// bench/peers/nf4.py to compare. Prints a JSON document with the rates of one
// thread, in weights per second.
//
//     bench_nf4 IN.safetensors OUT.safetensors
#include <list>

#include "bench/measure.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

bool is_floating(const TensorView& view) {
  return view.dtype == Dtype::float32 || view.dtype == Dtype::float16 ||
         view.dtype == Dtype::bfloat16;
}

struct Converted {
  std::list<Nf4Tensors> quantised;
  std::list<std::vector<std::byte>> dequantised;
  std::vector<NamedTensor> tensors;
  Json results;

  void note(const std::string& what, const std::string& name, double weights,
            double seconds) {
    Json row;
    row["workload"] = what + " " + name;
    row["weights_per_second"] = weights / seconds;
    results.push_back(std::move(row));
  }

  void quantise(const std::string& name, const TensorView& view) {
    const auto count = static_cast<double>(elements_of(view.shape));
    for (bool nested : {false, true}) {
      const std::string to = name + (nested ? ".nested" : ".single");
      const double took =
          wall_seconds([&] { quantised.emplace_back(view, nested); });
      for (NamedTensor& tensor : quantised.back().named(to))
        tensors.push_back(std::move(tensor));
      note("quantise", to, count, took);
    }
  }

  void dequantise(const std::string& name, const Nf4Parts& parts) {
    const auto count = static_cast<std::size_t>(elements_of(parts.shape));
    std::vector<std::byte>& bytes =
        dequantised.emplace_back(count * size_of(parts.dtype));
    const TensorView view{
        .data = bytes.data(), .dtype = parts.dtype, .shape = parts.shape};
    const double took = wall_seconds(
        [&] { dequantize_nf4(parts.codes, parts.weight_scales(), view); });
    tensors.push_back({name + ".dequantized", view});
    note("dequantise", name, static_cast<double>(count), took);
  }
};

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  if (count != 3) {
    std::fprintf(stderr, "bench_nf4 IN.safetensors OUT.safetensors\n");
    return 2;
  }
  const MappedWeights in(arguments[1]);
  Converted converted;
  for (const auto& [name, tensor] : in.all()) {
    if (const std::optional<Nf4Parts> parts = nf4_parts(in, name))
      converted.dequantise(name, *parts);
    else if (name.ends_with(".values") && is_floating(tensor.view))
      converted.quantise(name, tensor.view);
  }
  const std::filesystem::path out = arguments[2];
  OutputFolder(real_files(), out.parent_path(), "OUT")
      .write(out.filename().string(), safetensors(converted.tensors));
  Json result =
      result_of("nf4", "What do weights become in four bits, and back?", count,
                arguments);
  result["results"] = std::move(converted.results);
  return finish(result);
}
