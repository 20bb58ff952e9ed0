#include "sim/signing/istio_csr_settings.h"

#include "core/base/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

IstioCsrSettings Of(const json& args, const std::string& tag = "v0.14.0") {
  const json container = {{"name", "csr"}, {"image", "quay.io/jetstack/cert-manager-istio-csr:" + tag}, {"args", args}};
  const json pod = {{"spec", {{"containers", json::array({container})}}}};
  return IstioCsrSettings::Of(pod).value_or(IstioCsrSettings());
}

TEST(IstioCsrSettings, AContainerOfAnotherImageIsNone) {
  const json container = {{"name", "csr"}, {"image", "quay.io/jetstack/cert-manager-istio-csr-fork:v1"}};
  EXPECT_FALSE(IstioCsrSettings::Of({{"spec", {{"containers", json::array({container})}}}}).has_value());
}

TEST(IstioCsrSettings, ArgumentsComeWithAnEqualsSignBesideItOrAsALetter) {
  const IstioCsrSettings is = Of({"--cluster-id=east", "--trust-domain", "corp.example", "-u", "ca", "-kClusterIssuer",
                                  "-d", "-m=30m", "--serving-address", ":8443"});
  EXPECT_THAT(is.ends, IsEmpty());
  EXPECT_EQ(is.cluster_id, "east");
  EXPECT_EQ(is.trust_domain, "corp.example");
  EXPECT_EQ(*is.issuer, (IssuerName{"ca", "ClusterIssuer", "cert-manager.io"}));
  EXPECT_TRUE(is.preserve_requests);
  EXPECT_EQ(is.max_client_lifetime, 30min);
  EXPECT_EQ(is.port, 8443);
}

TEST(IstioCsrSettings, AListReplacesItsDefaultAndGoesOnWithEachArgument) {
  EXPECT_THAT(
      Of({"--serving-certificate-dns-names=a.svc,b.svc", "--serving-certificate-dns-names=c.svc"}).serving_names,
      ElementsAre("a.svc", "b.svc", "c.svc"));
}

TEST(IstioCsrSettings, AFlagTakesNoWordThatFollows) {
  EXPECT_TRUE(Of({"--istiod-cert-enabled", "false"}).makes_istiod_certificate);
}

TEST(IstioCsrSettings, AMapOfIssuersNeedsItsNamespaceToo) {
  EXPECT_THAT(Of({"--runtime-issuance-config-map-name=issuer"}).issuer_map, IsEmpty());
}

struct Impossible {
  const char* name;
  json args;
  const char* ends;
};

class ImpossibleArguments : public testing::TestWithParam<Impossible> {};

TEST_P(ImpossibleArguments, EndItInItsOwnWords) { EXPECT_EQ(Of(GetParam().args).ends, GetParam().ends); }

INSTANTIATE_TEST_SUITE_P(
    All, ImpossibleArguments,
    testing::Values(
        Impossible{"Duration",
                   {"--serving-certificate-duration=1d"},
                   "invalid argument \"1d\" for \"-t, --serving-certificate-duration\" flag: time: unknown unit \"d\" "
                   "in duration \"1d\""},
        Impossible{"Flag",
                   {"--istiod-cert-enabled=dynamic"},
                   "invalid argument \"dynamic\" for \"--istiod-cert-enabled\" flag: strconv.ParseBool: parsing "
                   "\"dynamic\": invalid syntax"},
        Impossible{"Number",
                   {"--metrics-port=web"},
                   "invalid argument \"web\" for \"--metrics-port\" flag: strconv.ParseInt: parsing \"web\": invalid "
                   "syntax"},
        Impossible{"NumberOutOfRange",
                   {"--log-level=99999999999"},
                   "invalid argument \"99999999999\" for \"-v, --log-level\" flag: strconv.ParseUint: parsing "
                   "\"99999999999\": value out of range"},
        Impossible{"Unknown", {"--clusterid=east"}, "unknown flag: --clusterid"},
        Impossible{"UnknownLetter", {"-z"}, "unknown shorthand flag: 'z' in -z"},
        Impossible{"NoValue", {"--cluster-id"}, "flag needs an argument: --cluster-id"},
        Impossible{"LogFormat", {"--log-format=xml"}, "invalid log-format; must be either \"text\" or \"json\""},
        Impossible{"NoNames",
                   {"--serving-certificate-dns-names="},
                   "the list of DNS names to add to the serving certificate is empty"},
        Impossible{"RenewBefore",
                   {"--istiod-cert-enabled", "--istiod-cert-duration=1h", "--istiod-cert-renew-before=90m"},
                   "istiod certificate renew-before 1h30m0s must be smaller than the requested duration 1h0m0s"},
        Impossible{"NegativeDuration",
                   {"--istiod-cert-enabled", "--istiod-cert-duration=-1h"},
                   "istiod certificate renew-before 30m0s must be smaller than the requested duration -1h0m0s"},
        Impossible{
            "TwoOfIstiods",
            {"--istiod-cert-enabled", "--istiod-cert-duration=5m", "--istiod-cert-key-algorithm=dsa"},
            "istiod certificate renew-before 30m0s must be smaller than the requested duration 5m0s\ninvalid key "
            "algorithm \"DSA\"; valid values are RSA and ECDSA"},
        Impossible{"ProbesPort",
                   {"--readiness-probe-port=99999999"},
                   "failed to create manager: error listening on 0.0.0.0:99999999: listen tcp: address 99999999: "
                   "invalid port"},
        Impossible{"MetricsPort",
                   {"--metrics-port=-1"},
                   "failed to start metrics server: failed to create listener: listen tcp: address -1: invalid port"},
        Impossible{"OnePortTwice",
                   {"--metrics-port=6060"},
                   "failed to start metrics server: failed to create listener: listen tcp 0.0.0.0:6060: bind: address "
                   "already in use"},
        Impossible{"TlsVersion",
                   {"--serving-tls-min-version=1.2"},
                   "failed to create tls provider: serving tls min version: unknown tls version \"1.2\""},
        Impossible{"NoIssuer",
                   {"--issuer-enabled=false"},
                   "failed to initialise cert-manager manager: runtime configuration parameters for name and namespace "
                   "are required if no issuerRef is provided on startup"},
        Impossible{
            "IssuerWithoutName",
            {"--issuer-name="},
            "failed to initialise cert-manager manager: invalid issuerRef passed at startup: issuerRef.Name is a "
            "required field if any field is set for issuerRef"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(IstioCsrSettings, WhatIsNoAddressEndsItOnceItServes) {
  EXPECT_EQ(Of({"--serving-address=0.0.0.0:99999999"}).ends_when_serving,
            "failed to listen 0.0.0.0:99999999: listen tcp: address 99999999: invalid port");
  EXPECT_EQ(Of({"--serving-address=6443"}).ends_when_serving,
            "failed to listen 6443: listen tcp: address 6443: missing port in address");
  EXPECT_EQ(Of({"--serving-address=0.0.0.0:grpc"}).ends_when_serving,
            "failed to listen 0.0.0.0:grpc: listen tcp: lookup tcp/grpc: unknown port");
  EXPECT_THAT(Of({"--serving-address=[::]:6443"}).ends_when_serving, IsEmpty());
}

TEST(IstioCsrSettings, AtAnAddressOfItsOwnPodItServesNobodyElse) {
  EXPECT_TRUE(Of({"--serving-address=127.0.0.1:6443"}).serves_itself);
  EXPECT_FALSE(Of({"--serving-address=0.0.0.0:6443"}).serves_itself);
}

// Since 0.9 the size counts for both kinds of keys.
TEST(IstioCsrSettings, AKeyOfAnotherKindNeedsItsOwnSize) {
  const json args = {"--serving-signature-algorithm=ECDSA", "--serving-certificate-key-size=2048"};
  EXPECT_THAT(Of(args, "v0.9.0").no_request, HasSubstr("unsupported serving certificate key size"));
  EXPECT_THAT(Of(args, "v0.8.1").no_request, IsEmpty());
}

TEST(IstioCsrSettings, WhatItEndsWithIsQuotedAsItsLogDoes) {
  EXPECT_EQ(EndsWith("csr", "a \"b\"\nc"),
            "container csr ends: \"error running cert-manager-istio-csr\" err=\"a \\\"b\\\"\\nc\"");
}

}  // namespace
}  // namespace wavetank::sim
