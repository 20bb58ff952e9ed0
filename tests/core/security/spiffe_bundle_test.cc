#include "core/security/spiffe_bundle.h"

#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/security/trust_bundle.h"
#include "core/x509/x509.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::security {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

x509::CertificateRef Root(const char* name) { return x509::MakeRootCa(1, name, Time{}, 24h * 365).root; }

std::string Document(const std::vector<x509::CertificateRef>& roots) {
  json keys = json::array({{{"use", "jwt-svid"}, {"kty", "EC"}}});
  for (const x509::CertificateRef& root : roots) {
    keys.push_back({{"use", "x509-svid"}, {"kty", "EC"}, {"x5c", json::array({absl::Base64Escape(root->der())})}});
  }
  return JsonText(json{{"keys", keys}, {"spiffe_sequence", 1}});
}

class SpiffeEndpointsTest : public ::testing::Test {
 protected:
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  std::map<std::string, std::string> web;
  int asked = 0;
  TrustBundleSources bundle;
  SpiffeEndpoints endpoints{host, bundle, "td", [this](const std::string& url) {
                              ++asked;
                              return web.contains(url) ? std::optional(web.at(url)) : std::optional<std::string>();
                            }};
};

TEST_F(SpiffeEndpointsTest, RootsOfAllEndpointsAreTrusted) {
  web["https://a.example/bundle"] = Document({Root("a"), Root("b")});
  web["https://c.example"] = Document({Root("c")});
  endpoints.SetEndpoints({"https://a.example/bundle", "c.example"});
  Run(1s);
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(Root("a")->ToPem(), Root("b")->ToPem(), Root("c")->ToPem()));
}

TEST_F(SpiffeEndpointsTest, AnotherRootIsSeenHalfAnHourLater) {
  web["https://a.example"] = Document({Root("a")});
  endpoints.SetEndpoints({"a.example"});
  Run(1min);
  web["https://a.example"] = Document({Root("b")});
  Run(28min);
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(Root("a")->ToPem()));
  Run(2min);
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(Root("b")->ToPem()));
}

TEST_F(SpiffeEndpointsTest, OneThatDoesNotAnswerIsAskedForTenSecondsAndHoldsNobodyUp) {
  web["https://a.example"] = Document({Root("a")});
  endpoints.SetEndpoints({"silent.example", "a.example"});
  Run(9s);
  EXPECT_THAT(bundle.roots(), IsEmpty());
  Run(20s);
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(Root("a")->ToPem()));
  EXPECT_THAT(std::string(Message(endpoints.trouble())),
              HasSubstr("unable to fetch trust Anchors from endpoint silent.example: exhausted retries"));
  EXPECT_LT(asked, 12);
}

TEST_F(SpiffeEndpointsTest, EndpointsThatAreTakenAwayLoseTheirRoots) {
  web["https://a.example"] = Document({Root("a")});
  endpoints.SetEndpoints({"a.example"});
  Run(1s);
  endpoints.SetEndpoints({});
  Run(1s);
  EXPECT_THAT(bundle.roots(), IsEmpty());
}

TEST(SpiffeBundle, DocumentsThatAreNoneAreToldInItsWords) {
  const auto why = [](const std::string& document) {
    return std::string(Message(ParseSpiffeBundle("td", "https://a.example", document).status()));
  };
  EXPECT_THAT(why("<html>"), HasSubstr("trust domain [td] at URL [https://a.example] failed to decode bundle"));
  EXPECT_THAT(why(R"({"keys":[]})"), HasSubstr("does not provide a X509 SVID"));
  EXPECT_THAT(why(R"({"keys":[{"use":"x509-svid","x5c":[]}]})"),
              HasSubstr("expected 1 certificate in x509-svid entry 0; got 0"));
}

}  // namespace
}  // namespace wavetank::security
