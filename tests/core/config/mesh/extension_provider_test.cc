#include "core/config/mesh/extension_provider.h"

#include <gtest/gtest.h>

#include <optional>

namespace wavetank::config {
namespace {

// istiod: parseStatusOnError, Go's ParseInt and the names of envoy.type.v3.StatusCode.
TEST(ExtensionProvider, StatusOnErrorIsANumberThatEnvoyHasANameFor) {
  EXPECT_EQ(ParseHttpStatus("403"), 403);
  EXPECT_EQ(ParseHttpStatus("+403"), 403);
  EXPECT_EQ(ParseHttpStatus("0"), 0);
  for (const char* none : {"", "+", "-403", "++403", "403 ", "402x", "299", "306", "600", "99999999999"}) {
    EXPECT_EQ(ParseHttpStatus(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace wavetank::config
