// Damaged text: `PENSTOCK_TEST_DAMAGES=100000` for the long campaign.
#include <zlib.h>

#include "penstock/sources/files/test_damage.h"

namespace penstock::text {
namespace {

std::string csv_rows() {
  std::string text = "id,name,x,when,flag\n";
  for (int row = 0; row < 80; ++row)
    text += std::to_string(row) + ",\"na\"\"me, " + std::to_string(row) +
            "\"," + std::to_string(row) +
            ".5,2024-01-01 00:00:" + std::to_string(10 + row % 50) + "," +
            (row % 2 ? "true" : "NA") + "\r\n";
  return text;
}

std::string json_rows() {
  std::string text;
  for (int row = 0; row < 80; ++row)
    text += "{\"id\": " + std::to_string(row) +
            ", \"o\": {\"a\": 1.5, \"b\": \"x\\u00e4\"}, \"l\": [{\"k\": [1, "
            "2]}], \"t\": true, \"n\": null}\n";
  return text;
}

TEST(DamagedText, GivesRowsOrAnErrorThatNamesTheFile) {
  files::TestFolder folder;
  const std::string csv = folder.write("t.csv", csv_rows());
  files::read_damaged(Json(csv), csv, files::damages(300), 1);
  const std::string jsonl = folder.write("t.jsonl", json_rows());
  files::read_damaged(Json(jsonl), jsonl, files::damages(300), 2);
}

TEST(DamagedText, GivesRowsOrAnErrorWhereItIsCompressed) {
  files::TestFolder folder;
  const std::string path = folder.path("t.csv.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  const std::string text = csv_rows();
  ASSERT_GT(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), 0);
  ASSERT_EQ(gzclose(file), Z_OK);
  files::read_damaged(Json(path), path, files::damages(200), 3);
}

}  // namespace
}  // namespace penstock::text
