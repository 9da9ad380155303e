#include "penstock/demo/centroid.h"

#include <gtest/gtest.h>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

TEST(Haversine, KnowsDistancesOnTheSphere) {
  EXPECT_EQ(haversine_km(50, 10, 50, 10), 0);
  EXPECT_NEAR(haversine_km(0, 0, 0, 180), 6371.0088 * 3.14159265358979, 1e-6);
  EXPECT_NEAR(haversine_km(0, 0, 1, 0), 111.1951, 1e-4);
  EXPECT_NEAR(haversine_km(60, 0, 60, 1), 111.1951 / 2, 0.01);
}

class CentroidTest : public testing::Test {
 protected:
  Job job(bool standardised) {
    std::string yes = standardised ? "true" : "false";
    return run_.job({R"(model={"kind": "set_position", "set": "receivers",
            "target": "target", "latitude": "lat", "longitude": "lon",
            "strength": "snr_db"})",
                     "device=cpu", "fields.receivers.standardize=" + yes,
                     "fields.target.standardize=" + yes,
                     "fields.target.dtype=\"float64\""});
  }
  CentroidError error(const Job& job) {
    return weighted_centroid(*open_loader(job), job);
  }
  PositionsRun run_;
};

// The map is 300 km wide: a guess would be some 150 km off.
TEST_F(CentroidTest, IsFarBetterThanAGuessAndFarFromTheTruth) {
  CentroidError found = error(job(true));
  EXPECT_GT(found.val_median_km, 5);
  EXPECT_LT(found.val_median_km, 60);
  EXPECT_GT(found.val_rows, 60);
  EXPECT_LT(found.val_rows, 200);
  EXPECT_TRUE(found.n == 1 || found.n == 2 || found.n == 4);
}

TEST_F(CentroidTest, DoesNotDependOnStandardising) {
  CentroidError with = error(job(true)), without = error(job(false));
  EXPECT_EQ(with.n, without.n);
  // A strength that is missing is the mean with, and 0 without.
  EXPECT_NEAR(with.val_median_km, without.val_median_km, 5);
}

}  // namespace
}  // namespace penstock
