// Every kind of data set through one suite.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "penstock/dataset/fake/token_table.h"
#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/sources/fake/fake_store.h"
#include "tests/conformance/dataset_suite.h"

namespace penstock {
namespace {

using Made = std::shared_ptr<const Dataset>;

/// Of stores, which a case leaves to its next making.
struct StoreFolder {
  ~StoreFolder() { std::filesystem::remove_all(path); }
  const std::string path =
      testing::TempDir() + "penstock-datasets-" + std::to_string(::getpid());
};
std::string store_dir(const std::string& name) {
  static const StoreFolder folder;
  return folder.path + "/" + name;
}

/// A number, and on the host texts that differ in length, and crops.
WordsDataset words(const std::string& cache, bool on_host) {
  WordsDataset words;
  words.table.version = "1";
  words.options.cache = cache;
  words.options.split = {.train = 0.8, .val = 0.2};
  words.add_number();
  if (!on_host) return words;
  words.add_letters(Lengths::padded);
  words.add_strip();
  return words;
}
DatasetSuiteCase table(const std::string& name, const char* device,
                       const std::string& cache, bool on_host = true) {
  return {name, device, [=](Device& on) -> Made {
            WordsDataset rows = words(cache, on_host);
            rows.options.store_dir = store_dir(name);
            return rows.prepare(on);
          }};
}

Made mixed(Device& device) {
  std::vector<MixedSourceOptions> options;
  std::vector<std::unique_ptr<Source>> sources;
  for (double weight : {2.0, 1.0}) {
    const WordsDataset rows = words("ram", true);
    options.push_back({.rows = rows.options, .weight = weight});
    sources.push_back(
        std::make_unique<FakeSource>(rows.table, requests_of(rows.options)));
  }
  return prepare_mixed(std::move(options), std::move(sources), Exhausted::stop,
                       device);
}

Made tokens(const std::string& pack, Device& device) {
  TokenTable rows;
  rows.field(R"(, "max_length": 40, "vocab_size": 5000, "pack": ")" + pack +
             "\"");
  return rows.prepare(device);
}
DatasetSuiteCase packed(const std::string& pack) {
  return {"packed_" + pack, "cpu",
          [pack](Device& device) { return tokens(pack, device); }};
}

Made arrays(const std::string& cache, Device& device) {
  auto numbers = std::make_shared<std::vector<std::int64_t>>(600);
  std::iota(numbers->begin(), numbers->end(), 7);
  const TensorView view{.data = reinterpret_cast<std::byte*>(numbers->data()),
                        .dtype = Dtype::int64,
                        .shape = {300, 2}};
  std::vector<SampleId> train, val;
  for (SampleId id = 0; id < 300; ++id)
    (id % 5 == 3 ? val : train).push_back(id);
  return std::make_shared<ArrayDataset>(
      std::vector<NamedArray>{{"pairs", view, numbers}},
      ArrayDatasetOptions{.cache = cache, .train = train, .val = val}, device);
}

RowFunction halves(bool maps) {
  return {.layout = layout_of_tensors({{.name = "half"}}),
          .fingerprint = "halves",
          .call = [maps](const RowCall& call) {
            for (std::size_t i = 0; i < call.ids.size(); ++i) {
              std::int64_t number = call.ids[i];
              if (maps)
                std::memcpy(&number, call.in[0].data + i * 16, sizeof(number));
              const float half = static_cast<float>(number) / 2;
              std::memcpy(call.out[0].data + i * sizeof(half), &half,
                          sizeof(half));
            }
          }};
}
Made function(Device&) {
  return std::make_shared<FunctionDataset>(300, halves(false));
}
Made function_over_arrays(Device& device) {
  return std::make_shared<FunctionDataset>(arrays("auto", device), halves(true),
                                           device);
}

/// Texts by position, in chunks.
std::unique_ptr<FakeStore> texts(const std::vector<Field>& fields) {
  Block block;
  block.rows = 300;
  block.columns.push_back({.type = ColumnType::text});
  for (std::int64_t row = 0; row < block.rows; ++row)
    block.columns[0].append_text(
        TokenTable::text_of(TokenTable::tokens_of(row)));
  return std::make_unique<FakeStore>(std::vector<std::string>{"ids"},
                                     std::move(block), requests_of(fields));
}
Made by_position(Device&) {
  IndexedOptions options;
  options.fields = {
      {"ids", std::make_shared<Letters>("ids", "ids", Lengths::packed)}};
  options.split = {.train = 0.8, .val = 0.2};
  auto source = texts(options.fields);
  return std::make_shared<IndexedDataset>(std::move(options),
                                          std::move(source));
}
/// Rows that are prepared when a batch is planned.
Made growing(Device& device) {
  TokenTable rows;
  rows.field(R"(, "max_length": 40, "vocab_size": 5000, "pack": "none")");
  rows.options.preparing = Preparing::meanwhile;
  rows.options.cache = "none";
  rows.options.open = [](StopFlag) { return std::unique_ptr<Source>(); };
  return prepare_dataset(rows.options, texts(rows.options.fields), device);
}

INSTANTIATE_TEST_SUITE_P(
    All, DatasetSuite,
    testing::Values(
        table("table_in_ram", "cpu", "ram"),
        table("table_that_is_read", "cpu", "none"),
        table("table_in_a_store", "cpu", "disk"),
        table("table_that_is_copied", "sim", "ram"),
        table("table_on_a_device", "sim", "device", false),
        DatasetSuiteCase{"mixed", "cpu", mixed}, packed("best_fit"),
        packed("wrapped"), packed("none"),
        DatasetSuiteCase{"arrays", "cpu",
                         [](Device& on) { return arrays("auto", on); }},
        DatasetSuiteCase{"arrays_on_a_device", "sim",
                         [](Device& on) { return arrays("device", on); }},
        DatasetSuiteCase{"function", "cpu", function},
        DatasetSuiteCase{"function_over_arrays", "sim", function_over_arrays},
        DatasetSuiteCase{"by_position", "cpu", by_position},
        DatasetSuiteCase{"growing", "cpu", growing}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock
