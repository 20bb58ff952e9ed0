#include "core/security/trust_bundle.h"

#include "core/x509/x509.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::security {
namespace {

using ::testing::UnorderedElementsAre;

TEST(TrustBundleSourcesTest, SourcesMergeAndChangesAreToldOnce) {
  const std::string a = x509::MakeRootCa(1, "a", Time{}, 24h).root->ToPem();
  const std::string b = x509::MakeRootCa(1, "b", Time{}, 24h).root->ToPem();
  TrustBundleSources bundle;
  int changes = 0;
  bundle.OnChanged([&] { ++changes; });
  using Source = TrustBundleSources::Source;
  ASSERT_TRUE(bundle.Update(Source::kIstioCa, {a}).ok());
  ASSERT_TRUE(bundle.Update(Source::kMeshConfig, {b, a}).ok());
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(a, b));
  EXPECT_EQ(changes, 2);
  ASSERT_TRUE(bundle.Update(Source::kMeshConfig, {b, a}).ok());
  EXPECT_EQ(changes, 2);
  ASSERT_TRUE(bundle.Update(Source::kMeshConfig, {}).ok());
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(a));
}

TEST(TrustBundleSourcesTest, OneBadRootLeavesAllAsItWas) {
  const x509::CertificateAuthority ca = x509::MakeRootCa(1, "a", Time{}, 24h);
  const x509::KeyPairRef key = x509::KeyPair::Derive(1, "leaf");
  x509::CertificateSpec spec;
  spec.sans = {"spiffe://cluster.local/ns/n/sa/s"};
  spec.not_after = Time{} + Duration(24h);
  const auto leaf = x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  TrustBundleSources bundle;
  using Source = TrustBundleSources::Source;
  ASSERT_TRUE(bundle.Update(Source::kMeshConfig, {ca.root->ToPem()}).ok());
  EXPECT_FALSE(bundle.Update(Source::kMeshConfig, {ca.root->ToPem(), "no certificate"}).ok());
  EXPECT_FALSE(bundle.Update(Source::kMeshConfig, {(*leaf)->ToPem()}).ok());
  EXPECT_THAT(bundle.roots(), UnorderedElementsAre(ca.root->ToPem()));
}

}  // namespace
}  // namespace wavetank::security
