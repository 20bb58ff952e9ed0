#include "core/gen/view/proxy_view.h"

#include "core/model/proxy.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(MetadataInteger, IsANumberOrItsTextAndNothingThatAnIntDoesNotHold) {
  Proxy proxy;
  proxy.metadata.raw = SharedJson(nlohmann::json{{"number", 15090},
                                                 {"whole", 15090.0},
                                                 {"text", "15090"},
                                                 {"large", 4294967296},
                                                 {"endless", 1e30},
                                                 {"below", -1e30},
                                                 {"word", "x"}});
  for (const char* key : {"number", "whole", "text"}) EXPECT_EQ(MetadataInteger(proxy, key), 15090) << key;
  for (const char* key : {"large", "endless", "below", "word", "absent"}) {
    EXPECT_EQ(MetadataInteger(proxy, key), 0) << key;
  }
}

}  // namespace
}  // namespace wavetank::pilot
