// Damaged Parquet and Arrow files: `PENSTOCK_TEST_DAMAGES=100000` for the long
// campaign.
#include <arrow/api.h>
#include <sys/resource.h>

#include "penstock/sources/arrow/test_writing.h"
#include "penstock/sources/files/test_damage.h"

namespace penstock::arrow_files {
namespace {

std::shared_ptr<arrow::Table> varied_table() {
  using namespace arrow;
  std::string ints = "[", texts = "[", lists = "[", objects = "[", times = "[";
  for (int row = 0; row < 60; ++row) {
    std::string comma = row == 0 ? "" : ", ", number = std::to_string(row);
    ints += comma + (row % 7 == 3 ? "null" : number);
    texts += comma + (row % 5 == 2 ? "null" : "\"text " + number + "\"");
    lists += comma + (row % 6 == 1 ? "null" : "[" + number + ", 2, 3]");
    objects += comma + R"([{"a": )" + number + R"(, "b": {"c": "x"}}])";
    times += comma + std::to_string(row * 1000);
  }
  auto object =
      struct_({field("a", int32()), field("b", struct_({field("c", utf8())}))});
  auto dictionary = arrow::dictionary(int8(), utf8());
  std::vector<std::shared_ptr<Array>> columns = {
      array_from(int32(), ints + "]"),
      array_from(float64(), ints + "]"),
      array_from(utf8(), texts + "]"),
      array_from(list(float32()), lists + "]"),
      array_from(list(object), objects + "]"),
      array_from(timestamp(TimeUnit::MILLI), times + "]"),
      array_from(dictionary, texts + "]"),
      array_from(large_utf8(), texts + "]"),
      array_from(utf8_view(), texts + "]"),
      array_from(fixed_size_list(int16(), 3), lists + "]")};
  std::vector<std::shared_ptr<Field>> fields;
  for (const auto& column : columns)
    fields.push_back(
        field("c" + std::to_string(fields.size()), column->type()));
  return Table::Make(schema(fields), columns);
}

long peak_kib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

struct DamageCase {
  const char* name;
  const char* file;
  Written how;
};

class Damage : public testing::TestWithParam<DamageCase> {};

TEST_P(Damage, GivesRowsOrAnErrorThatNamesTheFile) {
  files::TestFolder folder;
  const std::string path =
      folder.write(GetParam().file, written(varied_table(), GetParam().how));
  const long before = peak_kib();
  files::read_damaged(Json(path), path, files::damages(300), 42);
  EXPECT_LT(peak_kib() - before, 512 << 10);
}

using As = Written::As;
INSTANTIATE_TEST_SUITE_P(
    Formats, Damage,
    testing::Values(DamageCase{"parquet", "t.parquet", {As::parquet, 20}},
                    DamageCase{"zstd", "t.parquet", {As::parquet, 20, true}},
                    DamageCase{"file", "t.arrow", {As::file, 20}},
                    DamageCase{"stream", "t.arrow", {As::stream, 20}},
                    DamageCase{
                        "compressed", "t.arrow", {As::stream, 20, true}}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace penstock::arrow_files
