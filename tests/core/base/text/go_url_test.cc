#include "core/base/text/go_url.h"

#include "gtest/gtest.h"

namespace wavetank {
namespace {

// "scheme|rest", or "none".
std::string Parsed(std::string_view text) {
  const std::optional<GoUrl> url = ParseGoUrl(text);
  return url ? url->scheme + "|" + url->rest : "none";
}

TEST(GoUrl, SchemeIsReadInLowerCaseAndTheRestStaysAsItIs) {
  EXPECT_EQ(Parsed("oci://ghcr.io/x/y:1.0"), "oci|//ghcr.io/x/y:1.0");
  EXPECT_EQ(Parsed("HTTPS://Host/a?x=y&z#f"), "https|//Host/a?x=y&z#f");
  EXPECT_EQ(Parsed("http://u:p@[::1]:80/x"), "http|//u:p@[::1]:80/x");
  EXPECT_EQ(Parsed("oci:opaque/x"), "oci|opaque/x");
}

TEST(GoUrl, ImageWithoutSchemeIsAPath) {
  EXPECT_EQ(Parsed("docker.io/a/b@sha256:1"), "|//docker.io/a/b@sha256:1");
  EXPECT_EQ(Parsed(""), "|");
}

TEST(GoUrl, RegistryWithPortIsASchemeOrNothing) {
  EXPECT_EQ(Parsed("localhost:5000/p"), "localhost|5000/p");
  EXPECT_EQ(Parsed("10.0.0.1:5000/p"), "none");
}

TEST(GoUrl, WhatAPathMayNotHoldIsEscaped) {
  EXPECT_EQ(Parsed("http://h/a b\"/x"), "http|//h/a%20b%22/x");
  EXPECT_EQ(Parsed("http://h/%2F(x)"), "http|//h/%2F(x)") << "written so on purpose";
}

TEST(GoUrl, BrokenEscapesHostsAndPortsAreNone) {
  for (const char* text : {"oci://h/%zz", "oci://h:port/x", "oci://a b/x", ":x", "oci://h/\n", "oci://[::1/x"}) {
    EXPECT_EQ(Parsed(text), "none") << text;
  }
}

TEST(CleanPath, IsWrittenAsGosServersWriteIt) {
  EXPECT_EQ(CleanPath("//version"), "/version");
  EXPECT_EQ(CleanPath("/debug/../debug/./syncz"), "/debug/syncz");
  EXPECT_EQ(CleanPath("/debug/"), "/debug/");
  EXPECT_EQ(CleanPath("/debug/.."), "/");
  EXPECT_EQ(CleanPath(""), "/");
  EXPECT_EQ(CleanPath("/../.."), "/");
}

}  // namespace
}  // namespace wavetank
